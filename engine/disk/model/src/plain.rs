//! A drive without mechanics: every request completes at once. A volatile cache writes back its oldest data when it is
//! full.

use std::collections::VecDeque;

use serde_json::json;

use crate::drive::{Cache, Drive, Event, Op, Request};
use crate::{Nanos, SECTOR};

/// A drive that completes every request at once.
#[derive(Debug)]
pub struct Plain {
    cache: Cache,
    cache_sectors: u64,
    dirty: VecDeque<Request>,
    dirty_sectors: u64,
    ready: Vec<Event>,
    now: Nanos,
}

impl Plain {
    /// Create a drive with this kind of cache. `cache_bytes` is used only if the cache is volatile.
    pub fn new(cache: Cache, cache_bytes: u64) -> Self {
        Self {
            cache,
            cache_sectors: cache_bytes / SECTOR,
            dirty: VecDeque::new(),
            dirty_sectors: 0,
            ready: Vec::new(),
            now: 0,
        }
    }

    fn persisted(&mut self, request: Request) {
        self.ready.push(Event::Persisted {
            sector: request.sector,
            sectors: request.sectors,
            id: request.id,
        });
    }

    fn write(&mut self, request: Request) {
        if self.cache != Cache::Volatile {
            self.persisted(request);
            return;
        }
        self.dirty.push_back(request);
        self.dirty_sectors += request.sectors;
        while self.dirty_sectors > self.cache_sectors {
            let Some(oldest) = self.dirty.pop_front() else { break };
            self.dirty_sectors -= oldest.sectors;
            self.persisted(oldest);
        }
    }
}

impl Drive for Plain {
    fn submit(&mut self, now: Nanos, request: &Request) {
        self.now = now;
        match request.op {
            Op::Write => self.write(*request),
            Op::Flush => {
                self.dirty_sectors = 0;
                while let Some(oldest) = self.dirty.pop_front() {
                    self.persisted(oldest);
                }
            }
            Op::Discard if self.cache != Cache::Volatile => self.persisted(*request),
            Op::Read | Op::Discard => {}
        }
        self.ready.push(Event::Done { id: request.id, at: now });
    }

    fn next_event(&self) -> Option<Nanos> {
        (!self.ready.is_empty()).then_some(self.now)
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        self.now = self.now.max(now);
        events.append(&mut self.ready);
    }

    fn cut(&mut self) {
        self.reset();
    }

    fn report(&self) -> serde_json::Value {
        json!({"kind": "plain", "dirty_bytes": self.dirty_sectors * SECTOR})
    }

    fn reset(&mut self) {
        self.dirty.clear();
        self.ready.clear();
        self.dirty_sectors = 0;
    }
}
