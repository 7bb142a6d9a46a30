//! Drive-managed shingled recording (SMR): the tracks of a band overlap, so that a band is written as a whole.
//!
//! Writes go to a persistent cache on the disk, one after another. Without requests for a while, or when that cache is
//! full, the drive cleans it: it reads the band of the oldest write, merges what is cached of it, and writes the band
//! again. A stream that starts with a band is written in place. Reads are assembled from both. This module translates
//! requests; the disk below it moves the head. Source of the design: Aghayev, Shafaei, Desnoyers: Skylight — a window on
//! shingled disk operation, ACM Transactions on Storage 11(4), 2015.

mod cleaning;
mod clockwork;
mod media_cache;

use std::collections::{HashMap, VecDeque};

use crate::drive::{Cache, Drive, Event, Op, Request};
use crate::hdd::drive::Hdd;
use crate::hdd::profiles::{Profile, Shingles};
use crate::hdd::runs::Runs;
use crate::{Nanos, SECTOR};
use cleaning::Cleaning;
use media_cache::MediaCache;

/// Shorter writes are no stream, in sectors.
const STREAM_WRITE: u64 = 128;

/// A request of the disk belongs to a request of the host, or to the cleaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Host(u64),
    Cleaning,
}

/// A write of the host: its number, its sector less that of the disk, and the number of its request to the disk.
pub(super) type Written = (u64, u64, u64);

/// A hard disk with shingled tracks.
pub struct Shingled {
    disk: Hdd,
    cache: Cache,
    band: u64,
    idle: Nanos,
    sectors: u64,
    media: MediaCache,
    /// What the host wrote and the medium does not have yet, by sector of the disk.
    unwritten: Runs<Written>,
    /// The same of what the host wrote again before the medium had it: first sector, end.
    replaced: Vec<(u64, u64, Written)>,
    owners: HashMap<u64, Owner>,
    /// How many requests of the disk are left of each request of the host.
    parts: HashMap<u64, usize>,
    waiting: VecDeque<Request>,
    /// The sector at which the stream goes on.
    stream: Option<u64>,
    /// Ends of bands behind a stream that ended within the band: their tracks must be written again.
    torn: VecDeque<(u64, u64)>,
    cleaning: Option<Cleaning>,
    bands_cleaned: u64,
    last_request: Nanos,
    next_id: u64,
    now: Nanos,
    early: Vec<Event>,
}

impl Shingled {
    /// Create a drive of this profile with `bytes` bytes for the host. The persistent cache lies behind the data.
    pub fn new(
        profile: &Profile,
        shingles: Shingles,
        bytes: u64,
        cache: Cache,
        cache_bytes: u64,
        seed: u64,
    ) -> Self {
        let base = bytes.max(profile.capacity) / SECTOR;
        let whole = base * SECTOR + shingles.cache;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a positive time below 2^53
        let idle = (shingles.idle_ms * 1e6) as Nanos;
        Self {
            disk: Hdd::new(profile, whole, cache, cache_bytes, seed),
            cache,
            band: shingles.band / SECTOR,
            idle,
            sectors: bytes / SECTOR,
            media: MediaCache::new(base, shingles.cache / SECTOR, shingles.extents),
            unwritten: Runs::default(),
            replaced: Vec::new(),
            owners: HashMap::new(),
            parts: HashMap::new(),
            waiting: VecDeque::new(),
            stream: None,
            torn: VecDeque::new(),
            cleaning: None,
            bands_cleaned: 0,
            last_request: 0,
            next_id: 0,
            now: 0,
            early: Vec::new(),
        }
    }

    /// Pass waiting requests to the disk, in their order, until a write finds no room in the persistent cache.
    fn admit(&mut self) {
        while let Some(request) = self.waiting.front().copied() {
            match request.op {
                Op::Read => self.read(request),
                Op::Write if !self.write(request) => return,
                Op::Write => {}
                Op::Flush => self.ask(Owner::Host(request.id), Op::Flush, 0, 0),
                Op::Discard => {
                    self.media.forget(request.sector, request.end());
                    self.ask(Owner::Host(request.id), Op::Discard, request.sector, request.sectors);
                }
            }
            self.waiting.pop_front();
        }
    }

    fn ask(&mut self, owner: Owner, op: Op, sector: u64, sectors: u64) {
        self.next_id += 1;
        self.owners.insert(self.next_id, owner);
        if let Owner::Host(id) = owner {
            *self.parts.entry(id).or_default() += 1;
        }
        self.disk.submit(self.now, &Request { id: self.next_id, op, sector, sectors });
    }

    fn read(&mut self, request: Request) {
        let mut at = request.sector;
        for (start, end, place) in self.media.places(request.sector, request.end()) {
            if at < start {
                self.ask(Owner::Host(request.id), Op::Read, at, start - at);
            }
            self.ask(Owner::Host(request.id), Op::Read, place, end - start);
            at = end;
        }
        if at < request.end() {
            self.ask(Owner::Host(request.id), Op::Read, at, request.end() - at);
        }
    }

    /// Write to the band if the write is part of a stream, else to the persistent cache. Returns false without room.
    fn write(&mut self, request: Request) -> bool {
        let (sector, end) = (request.sector, request.end());
        let goes_on = self.stream == Some(sector);
        let place = if request.sectors >= STREAM_WRITE && (goes_on || sector % self.band == 0) {
            if !goes_on {
                self.end_stream();
            }
            self.stream = Some(end);
            self.media.forget(sector, end);
            sector
        } else {
            let Some(place) = self.media.take(sector, request.sectors) else { return false };
            place
        };
        let stop = place + request.sectors;
        self.replaced.extend(self.unwritten.within(place, stop));
        let written = (request.id, sector.wrapping_sub(place), self.next_id + 1); // the number that `ask` gives
        self.unwritten.insert(place, stop, written);
        // The drive writes whole physical sectors to the persistent cache.
        let whole = if place == sector { request.sectors } else { request.sectors.next_multiple_of(8) };
        self.ask(Owner::Host(request.id), Op::Write, place, whole);
        true
    }

    /// Note that the rest of the band of a stream that ends must be written again: the stream's last track overlaps it.
    fn end_stream(&mut self) {
        if let Some(end) = self.stream.take().filter(|end| end % self.band != 0) {
            let last = end.next_multiple_of(self.band).min(self.sectors);
            self.torn.push_back((end, last));
        }
    }
}
