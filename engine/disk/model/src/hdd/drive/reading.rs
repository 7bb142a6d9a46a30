//! Reads: from the cache, from sectors that reading ahead is about to pass, or by a queued command; and reading ahead.

use crate::Nanos;
use crate::hdd::drive::{Command, Doing, Hdd, ReadAhead};

impl Hdd {
    pub(super) fn take_read(&mut self, command: Command, ready: Nanos) {
        let request = command.request;
        let (sector, end) = (request.sector, request.end());
        if self.dirty.covers(sector, end) || self.segments.hold(sector, end) {
            self.counts.cache_hits += 1;
            self.finish_by_bus(request.id, ready, request.sectors);
        } else if let Some(when) = self.comes_by(sector, end) {
            // Reading ahead is about to pass these sectors: wait until it has.
            self.counts.cache_hits += 1;
            let start = self.ahead.map_or(sector, |ahead| ahead.sector);
            self.segments.add(start, end, self.segment);
            self.doing = Some((Doing::Command(command), when, self.at));
        } else {
            self.queue.push(command);
        }
        if self.doing.is_none() && !self.queue.is_empty() {
            self.stop_reading_ahead();
        }
        self.last_read_end = end;
    }

    /// Return the time at which reading ahead has read up to `end`; `None` if it does not reach `sector` soon.
    pub(super) fn comes_by(&self, sector: u64, end: u64) -> Option<Nanos> {
        let ahead = self.ahead.filter(|_| self.doing.is_none())?;
        let reached = self.reached(ahead);
        let near = sector >= ahead.sector && sector <= reached + 256 && end <= ahead.limit;
        near.then(|| {
            self.geometry.transfer(ahead.since, ahead.sector, end - ahead.sector, false).0.max(self.now)
        })
    }

    /// Return the sector that reading ahead has reached.
    pub(super) fn reached(&self, ahead: ReadAhead) -> u64 {
        let (mut low, mut high) = (0, ahead.limit - ahead.sector);
        while low < high {
            let middle = (low + high).div_ceil(2);
            let end = self.geometry.transfer(ahead.since, ahead.sector, middle, false).0;
            if end <= self.now { low = middle } else { high = middle - 1 }
        }
        ahead.sector + low
    }

    pub(super) fn stop_reading_ahead(&mut self) {
        let Some(ahead) = self.ahead.take() else { return };
        let reached = self.reached(ahead);
        if reached > ahead.sector {
            self.at = self.geometry.transfer(ahead.since, ahead.sector, reached - ahead.sector, false).1;
            self.segments.add(ahead.sector, reached, self.segment);
        }
    }

    /// Start reading ahead if no command is queued: the head stays on the track and reads on.
    pub(super) fn read_ahead(&mut self, sector: u64, since: Nanos) {
        if self.ahead.is_some_and(|ahead| sector < ahead.limit) || !self.queue.is_empty() {
            return;
        }
        let limit = (sector + self.segment / 2).min(self.sectors);
        self.ahead = (sector < limit).then_some(ReadAhead { since, sector, limit });
    }
}
