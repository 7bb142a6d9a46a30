//! Drives striped into one. Each has its own queue and its own actuator.
//!
//! The mapping is that of md's RAID 0 over equal drives (`raid0_map_sector`, drivers/md/raid0.c) and of a striped volume
//! of LVM (`stripe_map_sector`, drivers/md/dm-stripe.c): chunk `k` of the array is chunk `k / n` of drive `k mod n`. What
//! they write themselves, and where on a drive their data begins, is not modelled.

use std::collections::HashMap;

use serde_json::json;

use crate::Nanos;
use crate::drive::{Drive, Event, Op, Request};

/// Drives striped into one.
pub struct Array {
    members: Vec<Box<dyn Drive>>,
    /// Sectors of a chunk.
    chunk: u64,
    /// How many drives have not completed their part of a request, by its number.
    open: HashMap<u64, usize>,
    events: Vec<Event>,
}

impl Array {
    /// Stripe these drives. `chunk`: sectors of a chunk, at least 1.
    pub fn new(members: Vec<Box<dyn Drive>>, chunk: u64) -> Self {
        Self { members, chunk, open: HashMap::new(), events: Vec::new() }
    }

    /// Return how many sectors of a drive belong to the array's sectors before `sector`. As these grow by whole chunks
    /// in order, consecutive sectors of the array are consecutive on each drive: a drive has one part of a request.
    fn before(&self, member: usize, sector: u64) -> u64 {
        let row = self.chunk * self.members.len() as u64;
        let begun = (sector % row).saturating_sub(member as u64 * self.chunk);
        sector / row * self.chunk + begun.min(self.chunk)
    }

    /// Return the part of a request that concerns a drive, if any. A flush concerns all, an empty request the first.
    fn part(&self, member: usize, request: &Request) -> Option<Request> {
        if request.op == Op::Flush {
            return Some(*request);
        }
        let sector = self.before(member, request.sector);
        let sectors = self.before(member, request.end()) - sector;
        (sectors > 0 || (member == 0 && request.sectors == 0)).then_some(Request {
            sector,
            sectors,
            ..*request
        })
    }

    /// Pass on the events of a drive: a request completes with its last part.
    fn pass(&mut self, member: usize, events: &mut Vec<Event>) {
        let (chunk, count) = (self.chunk, self.members.len() as u64);
        for event in self.events.drain(..) {
            match event {
                Event::Done { id, .. } => {
                    let Some(open) = self.open.get_mut(&id) else { continue };
                    *open -= 1;
                    if *open == 0 {
                        self.open.remove(&id);
                        events.push(event);
                    }
                }
                Event::Persisted { mut sector, sectors, id } => {
                    let end = sector + sectors;
                    while sector < end {
                        let sectors = (chunk - sector % chunk).min(end - sector);
                        let first = (sector / chunk * count + member as u64) * chunk + sector % chunk;
                        events.push(Event::Persisted { sector: first, sectors, id });
                        sector += sectors;
                    }
                }
            }
        }
    }

    fn advance_each(&mut self, now: Nanos, events: &mut Vec<Event>) {
        for member in 0..self.members.len() {
            self.members[member].advance(now, &mut self.events);
            self.pass(member, events);
        }
    }
}

impl Drive for Array {
    fn submit(&mut self, now: Nanos, request: &Request) {
        let parts: Vec<_> = (0..self.members.len())
            .filter_map(|member| Some((member, self.part(member, request)?)))
            .collect();
        self.open.insert(request.id, parts.len());
        for (member, part) in parts {
            self.members[member].submit(now, &part);
        }
    }

    fn writes_zeros(&self) -> bool {
        self.members.iter().any(|member| member.writes_zeros())
    }

    fn remembers(&self) -> bool {
        self.members.iter().any(|member| member.remembers())
    }

    fn next_event(&self) -> Option<Nanos> {
        self.members.iter().filter_map(|member| member.next_event()).min()
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        while let Some(next) = self.next_event().filter(|next| *next < now) {
            self.advance_each(next, events); // in the order of time, whichever drive it is
        }
        self.advance_each(now, events);
    }

    fn cut(&mut self) {
        self.open.clear();
        self.members.iter_mut().for_each(|member| member.cut());
    }

    fn report(&self) -> serde_json::Value {
        let members: Vec<_> = self.members.iter().map(|member| member.report()).collect();
        json!({"kind": "array", "members": members})
    }

    fn reset(&mut self) {
        self.open.clear();
        self.members.iter_mut().for_each(|member| member.reset());
    }
}
