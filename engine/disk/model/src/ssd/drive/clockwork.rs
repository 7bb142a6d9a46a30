//! The `Drive` interface of an SSD, and the order of its events in time.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::drive::{Drive, Event, Request};
use crate::ssd::drive::Ssd;
use crate::{Nanos, PAGE};

impl Drive for Ssd {
    fn submit(&mut self, now: Nanos, request: &Request) {
        let mut before = Vec::new();
        self.run(now, &mut before);
        self.ready.splice(0..0, before);
        self.fold(now);
        self.waiting.push_back((*request, now));
        self.admit(now);
    }

    fn remembers(&self) -> bool {
        true
    }

    fn next_event(&self) -> Option<Nanos> {
        let done = self.done.peek().map(|Reverse((at, _))| *at);
        let ready = (!self.ready.is_empty()).then_some(self.now);
        [self.flash.next(), done, ready].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        self.run(now, events);
    }

    fn cut(&mut self) {
        let mut fresh = Self::empty(&self.profile, self.bytes, self.cache, self.seed);
        std::mem::swap(&mut fresh.ftl, &mut self.ftl); // the contents of the flash remain
        let (prepared, now, folded, slc) = (self.prepared.take(), self.now, self.folded, self.slc);
        *self = Self { prepared, now, folded, slc, idle_since: now, free: [now; 2], bus: [now; 2], ..fresh };
    }

    fn report(&self) -> Value {
        let (host, programmed) = self.ftl.counts();
        let (mean, most) = self.ftl.wear();
        let bytes = |pages: u64| pages * PAGE as u64;
        let rated = self.profile.endurance as f64 * self.bytes as f64 / self.profile.capacity as f64;
        let years = self.now as f64 / 1e9 / 31_557_600.0 * rated / bytes(host) as f64;
        json!({
            "kind": "ssd",
            "profile": self.profile.name,
            "steady": self.prepared.is_some(),
            "host_bytes": bytes(host),
            "flash_bytes": bytes(programmed + self.folded),
            "amplification": (host > 0).then(|| (programmed + self.folded) as f64 / host as f64),
            "slc_bytes": bytes(self.slc.0),
            "erases_per_block": {"mean": mean, "max": most},
            "rated_bytes": rated,
            "years_at_this_rate": (host > 0).then_some(years),
            "buffered_bytes": bytes(self.used as u64),
            "queued": self.waiting.len() + self.active,
        })
    }

    fn reset(&mut self) {
        let now = self.now;
        let mut fresh = self.renewed();
        (fresh.now, fresh.idle_since, fresh.free, fresh.bus) = (now, now, [now; 2], [now; 2]);
        *self = fresh;
    }
}

impl Ssd {
    fn run(&mut self, now: Nanos, events: &mut Vec<Event>) {
        loop {
            let flash = self.flash.next().filter(|at| *at <= now);
            let done = self.done.peek().map(|Reverse((at, _))| *at).filter(|at| *at <= now);
            match (flash, done) {
                (Some(at), done) if done.is_none_or(|done| at <= done) => self.step(at),
                (_, Some(at)) => {
                    events.append(&mut self.ready);
                    let Some(Reverse((_, id))) = self.done.pop() else { break };
                    self.now = self.now.max(at);
                    self.active -= 1;
                    self.idle_since = at;
                    events.push(Event::Done { id, at });
                    self.admit(self.now);
                }
                _ => break,
            }
        }
        self.now = self.now.max(now);
        events.append(&mut self.ready);
    }

    fn step(&mut self, at: Nanos) {
        self.now = self.now.max(at);
        let mut ended = std::mem::take(&mut self.ended);
        self.flash.advance(at, &mut ended);
        for (end, program) in ended.drain(..) {
            self.programmed(end, &program);
        }
        self.ended = ended;
        self.admit(self.now);
    }
}
