//! The `Drive` interface of a shingled disk: the disk's events become the host's.

use serde_json::{Value, json};

use crate::drive::{Drive, Event, Request};
use crate::hdd::shingled::{Owner, Shingled, Written};
use crate::{Nanos, SECTOR};

impl Drive for Shingled {
    fn submit(&mut self, now: Nanos, request: &Request) {
        let mut early = std::mem::take(&mut self.early);
        self.run(now, &mut early);
        self.early = early;
        self.last_request = self.now;
        self.waiting.push_back(*request);
        self.admit();
        self.clean();
    }

    fn writes_zeros(&self) -> bool {
        true
    }

    fn remembers(&self) -> bool {
        true
    }

    fn next_event(&self) -> Option<Nanos> {
        let early = (!self.early.is_empty()).then_some(self.now);
        [self.disk.next_event(), self.idle(), early].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        events.append(&mut self.early);
        self.run(now, events);
    }

    fn cut(&mut self) {
        self.disk.cut();
        self.drop_requests();
    }

    fn report(&self) -> Value {
        let mut report = self.disk.report();
        report["queued"] = (self.parts.len() + self.waiting.len()).into();
        report["persistent_cache_bytes"] = (self.media.sectors() * SECTOR).into();
        report["bands_cleaned"] = self.bands_cleaned.into();
        report["cleaning"] = json!(self.cleaning.is_some());
        report
    }

    fn reset(&mut self) {
        self.disk.reset();
        self.drop_requests();
        self.media.clear();
        self.torn.clear();
        self.bands_cleaned = 0;
    }
}

impl Shingled {
    /// Drop what power keeps alive. The persistent cache and its map are on the disk.
    fn drop_requests(&mut self) {
        self.unwritten = crate::hdd::runs::Runs::default();
        self.replaced.clear();
        self.owners.clear();
        self.parts.clear();
        self.waiting.clear();
        self.early.clear();
        self.cleaning = None;
        self.end_stream();
        self.last_request = self.now;
    }

    fn run(&mut self, now: Nanos, events: &mut Vec<Event>) {
        let mut seen = Vec::new();
        loop {
            let next = [self.disk.next_event(), self.idle()].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= now) else { break };
            self.now = self.now.max(at);
            self.disk.advance(self.now, &mut seen);
            for event in seen.drain(..) {
                self.pass(event, events);
            }
            self.clean();
            self.admit();
        }
        self.now = self.now.max(now);
    }

    fn pass(&mut self, event: Event, events: &mut Vec<Event>) {
        match event {
            Event::Done { id, at } => match self.owners.remove(&id) {
                Some(Owner::Host(id)) => {
                    let Some(left) = self.parts.get_mut(&id) else { return };
                    *left -= 1;
                    if *left == 0 {
                        self.parts.remove(&id);
                        self.last_request = self.last_request.max(at);
                        events.push(Event::Done { id, at });
                    }
                }
                Some(Owner::Cleaning) => self.answered(),
                None => {}
            },
            Event::Persisted { sector, sectors, id } => self.persisted(sector, sector + sectors, id, events),
        }
    }
    /// Pass on that the requests of the disk up to `newest` are on the medium in `sector..end`, as requests of the host.
    /// What the host has written again meanwhile is not.
    fn persisted(&mut self, sector: u64, end: u64, newest: u64, events: &mut Vec<Event>) {
        let mut tell = |start: u64, stop: u64, (id, offset, _): Written| {
            events.push(Event::Persisted { sector: start.wrapping_add(offset), sectors: stop - start, id });
        };
        for (start, stop, written) in std::mem::take(&mut self.replaced) {
            let (first, last) = (start.max(sector), stop.min(end));
            if first >= last || written.2 > newest {
                self.replaced.push((start, stop, written));
                continue;
            }
            tell(first, last, written);
            let left = [(start, first, written), (last, stop, written)];
            self.replaced.extend(left.into_iter().filter(|(start, stop, _)| start < stop));
        }
        for (start, stop, written) in self.unwritten.within(sector, end) {
            if written.2 <= newest {
                tell(start, stop, written);
                self.unwritten.remove(start, stop);
            }
        }
    }
}
