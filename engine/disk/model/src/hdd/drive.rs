//! The hard disk: what the head does next, and when a request completes.
//!
//! The head does one thing at a time: it serves the command whose sector it reaches first, writes back from the cache
//! in the elevator's order, or reads ahead. Requests that arrive after a flush wait until the flush completes, as with
//! FLUSH CACHE of SATA.

mod clockwork;
mod reading;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fslab_engine::random::Stream;

use crate::drive::{Cache, Event, Op, Request};
use crate::hdd::cache::{Dirty, Segments};
use crate::hdd::geometry::Geometry;
use crate::hdd::profiles::Profile;
use crate::{Nanos, SECTOR};

/// Weight of a command's age against its positioning time: a wait of one second counts as 10 ms of positioning.
const AGEING: f64 = 0.01;
/// Maximum number of sectors written back in one movement.
const LONGEST_WRITE: u64 = 4096;
/// Number of runs ahead of the head among which the elevator chooses.
const WINDOW: usize = 16;
/// Maximum number of runs of sectors in the write cache.
const MOST_RUNS: usize = 1024;
const SEGMENTS: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Command {
    request: Request,
    arrived: Nanos,
}

/// Current action of the head.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Command(Command),
    WriteBack { sector: u64, end: u64, id: u64 },
}

/// The head has been reading ahead from `sector` since `since`.
#[derive(Debug, Clone, Copy)]
struct ReadAhead {
    since: Nanos,
    sector: u64,
    limit: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    cache_hits: u64,
    media_reads: u64,
    media_writes: u64,
    seek_distance: u64,
}

/// A hard disk.
pub struct Hdd {
    profile: Profile,
    geometry: Geometry,
    cache: Cache,
    cache_sectors: u64,
    segment: u64,
    sectors: u64,
    now: Nanos,
    at: (u64, u64),
    doing: Option<(Doing, Nanos, (u64, u64))>,
    ahead: Option<ReadAhead>,
    queue: Vec<Command>,
    waiting: VecDeque<Command>,
    dirty: Dirty,
    segments: Segments,
    flush: Option<Request>,
    bus_free: Nanos,
    done: BinaryHeap<Reverse<(Nanos, u64)>>,
    persisted: Vec<Event>,
    counts: Counts,
}

impl Hdd {
    /// Create a drive of this profile with `bytes` bytes. The seed determines the rotational position at time 0.
    pub fn new(profile: &Profile, bytes: u64, cache: Cache, cache_bytes: u64, seed: u64) -> Self {
        let sectors = bytes / SECTOR;
        Self {
            profile: *profile,
            geometry: Geometry::new(profile, sectors, Stream::new(seed, 1).unit()),
            cache,
            cache_sectors: (cache_bytes / SECTOR).max(LONGEST_WRITE),
            segment: profile.buffer / SECTOR / 2 / SEGMENTS as u64,
            sectors,
            now: 0,
            at: (0, 0),
            doing: None,
            ahead: None,
            queue: Vec::new(),
            waiting: VecDeque::new(),
            dirty: Dirty::default(),
            segments: Segments::new(SEGMENTS),
            flush: None,
            bus_free: 0,
            done: BinaryHeap::new(),
            persisted: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Return the shortest possible time of a request: a read of 4 KiB from the cache.
    pub fn fastest(profile: &Profile) -> Nanos {
        Self::scaled(profile.command_us, 1e3) + Self::scaled(4096.0 / profile.bus_mb_s, 1e3)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times are positive and below 2^53
    fn scaled(value: f64, factor: f64) -> Nanos {
        (value * factor) as Nanos
    }

    fn command_time(&self) -> Nanos {
        Self::scaled(self.profile.command_us, 1e3)
    }

    /// Complete a request with a transfer through the interface, which carries one transfer at a time.
    fn finish_by_bus(&mut self, id: u64, ready: Nanos, sectors: u64) {
        let time = Self::scaled((sectors * SECTOR) as f64 / self.profile.bus_mb_s, 1e3);
        self.bus_free = self.bus_free.max(ready) + time;
        self.done.push(Reverse((self.bus_free, id)));
    }

    /// Start waiting requests as far as the queue, the cache and a flush allow, none before `from`.
    fn admit(&mut self, from: Nanos) {
        while let Some(command) = self.waiting.front().copied() {
            let full = self.queue.len() >= self.profile.queue || self.flush.is_some();
            if full || !self.take(command, from) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Accept a command. Returns false if there is no room for it yet.
    fn take(&mut self, command: Command, from: Nanos) -> bool {
        let request = command.request;
        let ready = from + self.command_time();
        match request.op {
            Op::Discard => self.done.push(Reverse((ready, request.id))),
            // What a protected cache has is safe already.
            Op::Flush if self.cache == Cache::Protected => self.done.push(Reverse((ready, request.id))),
            Op::Flush if self.dirty.sectors() == 0 && self.queue.is_empty() && self.doing.is_none() => {
                self.done.push(Reverse((ready, request.id)));
            }
            Op::Flush => self.flush = Some(request),
            Op::Read => self.take_read(command, ready),
            Op::Write if self.cache == Cache::None => {
                self.segments.forget(request.sector, request.end());
                self.stop_reading_ahead();
                self.queue.push(command);
            }
            Op::Write => return self.take_cached_write(request, ready),
        }
        true
    }

    fn take_cached_write(&mut self, request: Request, ready: Nanos) -> bool {
        let room =
            self.dirty.sectors() + request.sectors <= self.cache_sectors && self.dirty.runs() < MOST_RUNS;
        if !room && self.dirty.sectors() > 0 {
            return false;
        }
        self.segments.forget(request.sector, request.end());
        self.dirty.insert(request.sector, request.end(), request.id);
        if self.cache == Cache::Protected {
            self.persist(request.sector, request.sectors, request.id);
        }
        self.finish_by_bus(request.id, ready, request.sectors);
        true
    }

    fn persist(&mut self, sector: u64, sectors: u64, id: u64) {
        self.persisted.push(Event::Persisted { sector, sectors, id });
    }

    /// Choose the next action of the head if it is free.
    fn choose(&mut self) {
        if self.doing.is_none() {
            self.end_flush(); // requests that waited for the flush may start an action
        }
        if self.doing.is_some() {
            return;
        }
        let crowded =
            self.dirty.sectors() * 4 > self.cache_sectors * 3 || self.dirty.runs() * 4 > MOST_RUNS * 3;
        // If the cache is nearly full, write-back and queued commands take turns.
        let turn = crowded && self.counts.media_writes <= self.counts.media_reads;
        if !self.queue.is_empty() && !turn {
            self.start_command();
        } else if self.dirty.sectors() > 0 && !(self.ahead.is_some() && !crowded && self.flush.is_none()) {
            self.start_write_back();
        }
    }

    /// Complete the flush if no request that arrived before it remains.
    fn end_flush(&mut self) {
        let drained = self.cache == Cache::Protected || self.dirty.sectors() == 0;
        let Some(flush) = self.flush.filter(|_| drained && self.queue.is_empty()) else { return };
        self.flush = None;
        self.done.push(Reverse((self.now + self.command_time(), flush.id)));
        self.admit(self.now);
    }

    fn arrival(&self, sector: u64, write: bool, from: Nanos) -> Nanos {
        let margin = self.profile.margin_ms * 1e6;
        self.geometry.arrival(from, self.at, &self.geometry.place(sector), write, margin)
    }

    /// Return when a queued command is ready for the head: at the earliest when the drive has interpreted it.
    fn ready(&self, command: &Command) -> Nanos {
        (command.arrived + self.command_time()).max(self.now)
    }

    /// Start the queued command that the head serves first, and before it those that need no seek.
    fn start_command(&mut self) {
        while self.doing.is_none() {
            self.follow();
            let times = self.queue.iter().enumerate().map(|(index, command)| (self.cost(command), index));
            let best = times.min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, index)) = best else { break };
            let command = self.queue.remove(index);
            let ready = self.ready(&command);
            if command.request.op != Op::Read || !self.read_without_seek(command, ready) {
                self.seek(command, ready);
            }
        }
        self.admit(self.now);
    }

    /// Return the time until the head is at a command's sectors, less for a command that has waited long.
    fn cost(&self, command: &Command) -> f64 {
        let request = command.request;
        let write = request.op == Op::Write;
        let ready = self.ready(command);
        let when = if !write && self.holds(request.sector, request.end()) {
            ready
        } else if let Some((when, _)) = self.comes_by(request.sector, request.end()).filter(|_| !write) {
            when
        } else {
            self.arrival(request.sector, write, ready)
        };
        (when - self.now) as f64 - self.now.saturating_sub(command.arrived) as f64 * AGEING
    }

    fn seek(&mut self, command: Command, from: Nanos) {
        self.stop_reading_ahead();
        let request = command.request;
        let end = self.move_to(request.sector, request.sectors, request.op == Op::Write, from);
        match request.op {
            Op::Write => self.counts.media_writes += 1,
            _ => self.counts.media_reads += 1,
        }
        self.doing = Some((Doing::Command(command), end.0, end.1));
    }

    fn move_to(&mut self, sector: u64, sectors: u64, write: bool, from: Nanos) -> (Nanos, (u64, u64)) {
        let place = self.geometry.place(sector);
        self.counts.seek_distance += place.cylinder.abs_diff(self.at.0);
        let start = self.arrival(sector, write, from);
        let misaligned = write && (sector % 8 != 0 || sectors % 8 != 0);
        // A write to part of a 4 KiB sector reads the sector first and writes it one revolution later.
        let again = if misaligned { self.geometry.revolution() } else { 0 };
        self.geometry.transfer(start + again, sector, sectors, write)
    }

    fn start_write_back(&mut self) {
        self.stop_reading_ahead();
        let from = self.geometry.first_sector(self.at);
        let candidates = self.dirty.ahead(from).take(WINDOW);
        let best = candidates.min_by_key(|start| self.arrival(*start, true, self.now));
        let Some(sector) = best else { return };
        let (end, id) = self.dirty.run(sector, LONGEST_WRITE);
        let end = end.min(sector + LONGEST_WRITE);
        let (when, at) = self.move_to(sector, end - sector, true, self.now);
        self.counts.media_writes += 1;
        self.doing = Some((Doing::WriteBack { sector, end, id }, when, at));
    }

    /// Finish the head's action.
    fn end(&mut self, doing: Doing, when: Nanos, at: (u64, u64)) {
        self.now = when;
        self.doing = None;
        match doing {
            Doing::Command(command) => {
                let request = command.request;
                if request.op == Op::Write {
                    self.at = at;
                    self.persist(request.sector, request.sectors, request.id);
                    self.done.push(Reverse((when, request.id)));
                } else {
                    self.at = if self.ahead.is_some() { self.at } else { at };
                    self.segments.add(request.sector, request.end(), self.segment);
                    // All but the last sectors crossed the interface during the read.
                    self.finish_by_bus(request.id, when, request.sectors.min(8));
                    self.read_ahead(request.end(), when);
                }
            }
            Doing::WriteBack { sector, end, id } => {
                self.at = at;
                for (start, stop, written) in self.dirty.within(sector, end) {
                    if written <= id {
                        self.dirty.remove(start, stop); // what the host wrote meanwhile is not on the medium
                    }
                }
                if self.cache == Cache::Volatile {
                    self.persist(sector, end - sector, id);
                }
            }
        }
        self.admit(self.now);
    }

    fn step_time(&self) -> Option<Nanos> {
        let ahead = self.ahead.filter(|_| self.doing.is_none() && self.dirty.sectors() > 0).map(|ahead| {
            self.geometry.transfer(ahead.since, ahead.sector, ahead.limit - ahead.sector, false).0
        });
        self.doing.map(|(_, when, _)| when).or(ahead)
    }
}
