//! Reads: from the cache, from sectors that reading ahead is about to pass, or by a queued command; and reading ahead.

use crate::Nanos;
use crate::hdd::drive::{Command, Doing, Hdd, ReadAhead};

impl Hdd {
    pub(super) fn take_read(&mut self, command: Command, ready: Nanos) {
        if !self.read_without_seek(command, ready) {
            self.queue.push(command);
        }
    }

    /// Serve a read without moving the head, if its data is in the cache, or if reading ahead is about to pass it.
    pub(super) fn read_without_seek(&mut self, command: Command, ready: Nanos) -> bool {
        let request = command.request;
        let (sector, end) = (request.sector, request.end());
        if self.holds(sector, end) {
            self.finish_by_bus(request.id, ready, request.sectors);
        } else if let Some((_, when)) = self.comes_by(sector, end) {
            let start = self.ahead.map_or(sector, |ahead| ahead.sector);
            self.segments.add(start, end, self.segment);
            self.doing = Some((Doing::Command(command), when, self.at));
        } else {
            return false;
        }
        self.counts.cache_hits += 1;
        true
    }

    /// Return whether the cache has these sectors.
    pub(super) fn holds(&self, sector: u64, end: u64) -> bool {
        self.dirty.covers(sector, end) || self.segments.hold(sector, end)
    }

    /// Return when reading ahead passes `sector` and when it has read up to `end`; `None` if it does not come there soon.
    pub(super) fn comes_by(&self, sector: u64, end: u64) -> Option<(Nanos, Nanos)> {
        let ahead = self.ahead.filter(|_| self.doing.is_none())?;
        let within = sector >= ahead.sector && end <= ahead.limit;
        let time = |sector| self.passes(ahead, sector).max(self.now);
        (within && sector <= self.reached(ahead) + 256).then(|| (time(sector), time(end)))
    }

    /// Return the time at which reading ahead has read up to `sector`.
    fn passes(&self, ahead: ReadAhead, sector: u64) -> Nanos {
        self.geometry.transfer(ahead.since, ahead.sector, sector - ahead.sector, false).0
    }

    /// Return the sector that reading ahead has reached.
    pub(super) fn reached(&self, ahead: ReadAhead) -> u64 {
        let (mut low, mut high) = (0, ahead.limit - ahead.sector);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.passes(ahead, ahead.sector + middle) <= self.now {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        ahead.sector + low
    }

    /// Move the head to the track that reading ahead has reached. Returns the sector there.
    pub(super) fn follow(&mut self) -> u64 {
        let Some(ahead) = self.ahead else { return 0 };
        let reached = self.reached(ahead);
        if reached > ahead.sector {
            self.at = self.geometry.transfer(ahead.since, ahead.sector, reached - ahead.sector, false).1;
        }
        reached
    }

    pub(super) fn stop_reading_ahead(&mut self) {
        let reached = self.follow();
        if let Some(ahead) = self.ahead.take().filter(|ahead| reached > ahead.sector) {
            self.segments.add(ahead.sector, reached, self.segment);
        }
    }

    /// Read ahead after a read up to `sector`, which the head passed at `since`: it stays on the track and reads on.
    ///
    /// Reading ahead goes on as the host follows, also if the next command is already queued: if the head stopped for
    /// each command, it would miss the next sector by the time that a command takes, and wait for another revolution.
    pub(super) fn read_ahead(&mut self, sector: u64, since: Nanos) {
        let limit = (sector + self.segment / 2).min(self.sectors);
        let (from, since) = match self.ahead {
            None => (sector, since),
            Some(ahead) if self.reached(ahead) < ahead.limit => (sector, self.passes(ahead, sector)),
            Some(ahead) if ahead.limit - sector > self.segment / 4 => return,
            Some(ahead) => {
                self.stop_reading_ahead();
                (ahead.limit, self.arrival(ahead.limit, false, self.now))
            }
        };
        self.ahead = (from < limit).then_some(ReadAhead { since, sector: from, limit });
    }
}
