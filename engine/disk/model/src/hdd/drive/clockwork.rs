//! The `Drive` interface of a hard disk, and the order of its events in time.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::drive::{Drive, Event, Request};
use crate::hdd::drive::{Command, Counts, Hdd};
use crate::{Nanos, SECTOR};

impl Drive for Hdd {
    fn submit(&mut self, now: Nanos, request: &Request) {
        let mut ignored = Vec::new();
        self.run(now, &mut ignored);
        self.persisted.splice(0..0, ignored);
        self.waiting.push_back(Command { request: *request, arrived: now });
        self.admit(now);
        self.choose();
    }

    fn writes_zeros(&self) -> bool {
        true
    }

    fn next_event(&self) -> Option<Nanos> {
        let done = self.done.peek().map(|Reverse((at, _))| *at);
        let persisted = (!self.persisted.is_empty()).then_some(self.now);
        [self.step_time(), done, persisted].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        self.run(now, events);
    }

    fn cut(&mut self) {
        let (profile, bytes) = (self.profile, self.sectors * SECTOR);
        let fresh = Self::new(&profile, bytes, self.cache, self.cache_sectors * SECTOR, 0);
        let (geometry, now, counts) = (self.geometry.clone(), self.now, self.counts);
        *self = Self { geometry, now, counts, bus_free: now, ..fresh };
    }

    fn report(&self) -> Value {
        json!({
            "kind": "hdd",
            "profile": self.profile.name,
            "dirty_bytes": self.dirty.sectors() * SECTOR,
            "queued": self.queue.len() + self.waiting.len(),
            "cache_hits": self.counts.cache_hits,
            "media_reads": self.counts.media_reads,
            "media_writes": self.counts.media_writes,
            "seek_cylinders": self.counts.seek_distance,
        })
    }

    fn reset(&mut self) {
        self.cut();
        self.counts = Counts::default();
    }
}

impl Hdd {
    fn run(&mut self, now: Nanos, events: &mut Vec<Event>) {
        loop {
            let step = self.step_time().filter(|at| *at <= now);
            let done = self.done.peek().map(|Reverse((at, _))| *at).filter(|at| *at <= now);
            events.append(&mut self.persisted);
            match (step, done) {
                (Some(step), done) if done.is_none_or(|done| step <= done) => self.step(step),
                (_, Some(at)) => {
                    let Some(Reverse((_, id))) = self.done.pop() else { break };
                    events.push(Event::Done { id, at });
                }
                _ => break,
            }
        }
        self.now = self.now.max(now);
    }

    fn step(&mut self, at: Nanos) {
        self.now = at;
        match self.doing {
            Some((doing, when, place)) => self.end(doing, when, place),
            None => self.stop_reading_ahead(),
        }
        self.choose();
    }
}
