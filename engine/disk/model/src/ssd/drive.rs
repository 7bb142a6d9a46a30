//! The SSD: its controller, its write buffer, and the flash behind them.

mod clockwork;
mod commands;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use fslab_engine::random::Stream;

use crate::drive::{Cache, Event, Request};
use crate::ssd::flash::{Flash, Program};
use crate::ssd::ftl::{Ftl, Shape};
use crate::ssd::profiles::Profile;
use crate::{Nanos, PAGE, PAGE_SECTORS};

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times are positive and below 2^53
fn nanos(microseconds: f64) -> Nanos {
    (microseconds * 1e3) as Nanos
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive and below 2^53
fn whole(value: f64) -> u64 {
    value as u64
}

/// Return the time to transfer `bytes` bytes at a rate of 10⁶ B/s.
fn transfer(bytes: u64, mb_s: f64) -> Nanos {
    nanos(bytes as f64 / mb_s)
}

/// Garbage collection time that is not yet charged to a die. It is spread over the writes for which pages were freed.
#[derive(Debug, Clone, Copy, Default)]
struct Debt {
    pages: u64,
    time: Nanos,
}

impl Debt {
    fn pay(&mut self) -> Nanos {
        let share = self.time.checked_div(self.pages).unwrap_or(self.time);
        self.pages = self.pages.saturating_sub(1);
        self.time -= share;
        share
    }
}

/// The state of a drive that was filled and overwritten. Each reset starts from a copy: making it takes a microsecond
/// for each page of the disk.
struct Prepared {
    ftl: Ftl,
    last_die: u32,
}

/// An SSD.
pub struct Ssd {
    profile: Profile,
    bytes: u64,
    cache: Cache,
    seed: u64,
    prepared: Option<Box<Prepared>>,
    ftl: Ftl,
    flash: Flash,
    debts: Vec<Debt>,
    buffer_pages: usize,
    buffered: HashMap<u64, u32>,
    used: usize,
    open: Vec<(u64, u64)>,
    last_die: u32,
    waiting: VecDeque<(Request, Nanos)>,
    active: usize,
    through: HashMap<u64, u64>,
    flush: Option<u64>,
    free: [Nanos; 2],
    bus: [Nanos; 2],
    slc: (u64, u64),
    folded: u64,
    idle_since: Nanos,
    now: Nanos,
    done: BinaryHeap<Reverse<(Nanos, u64)>>,
    ready: Vec<Event>,
    ended: Vec<(Nanos, Program)>,
}

/// Return whether the map can number all flash pages of a disk of this size.
pub fn fits(profile: &Profile, bytes: u64) -> bool {
    if bytes < PAGE as u64 {
        return true; // has no pages to number
    }
    let (_, blocks, block) = layout(profile, bytes);
    let pages = u64::from(profile.dies).checked_mul(blocks).and_then(|all| all.checked_mul(block));
    pages.is_some_and(|pages| pages < u64::from(u32::MAX))
}

fn shape(profile: &Profile, bytes: u64) -> Shape {
    let (pages, blocks, block) = layout(profile, bytes);
    let number = |value: u64| u32::try_from(value).expect("bug: a disk is not that large");
    Shape { pages, dies: profile.dies, blocks: number(blocks), block_pages: number(block) }
}

/// Return the pages of the disk, the blocks of a die and the pages of a block.
fn layout(profile: &Profile, bytes: u64) -> (u64, u64, u64) {
    let pages = bytes / PAGE as u64;
    let dies = u64::from(profile.dies);
    let raw = whole(pages as f64 * (1.0 + profile.spare)).div_ceil(dies);
    let unit = profile.flash_page / PAGE as u64 * u64::from(profile.planes);
    // 256 blocks per die for any disk size: garbage collection depends on shares, not on sizes
    let block = raw.div_ceil(256).next_multiple_of(unit);
    let blocks = raw.div_ceil(block).max(pages.div_ceil(dies).div_ceil(block) + 6);
    (pages, blocks, block)
}

impl Ssd {
    /// Create a drive of this profile with `bytes` bytes. If `steady`, it is filled, then overwritten at random with
    /// twice its size.
    pub fn new(profile: &Profile, bytes: u64, cache: Cache, steady: bool, seed: u64) -> Self {
        let mut made = Self::empty(profile, bytes, cache, seed);
        if steady {
            made.precondition();
            made.prepared = Some(Box::new(Prepared { ftl: made.ftl.clone(), last_die: made.last_die }));
        }
        made
    }

    fn empty(profile: &Profile, bytes: u64, cache: Cache, seed: u64) -> Self {
        let shape = shape(profile, bytes);
        Self {
            profile: *profile,
            bytes,
            cache,
            seed,
            prepared: None,
            ftl: Ftl::new(shape),
            flash: Flash::new(profile.dies, profile.channels),
            debts: vec![Debt::default(); profile.dies as usize],
            buffer_pages: usize::try_from(profile.buffer.min(bytes / 16) / PAGE as u64).unwrap_or(0).max(256),
            buffered: HashMap::new(),
            used: 0,
            open: Vec::new(),
            last_die: 0,
            waiting: VecDeque::new(),
            active: 0,
            through: HashMap::new(),
            flush: None,
            free: [0; 2],
            bus: [0; 2],
            slc: (0, whole(shape.pages as f64 * profile.slc)),
            folded: 0,
            idle_since: 0,
            now: 0,
            done: BinaryHeap::new(),
            ready: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Return the shortest possible time of a request: a write to the buffer, or a read of a page without data.
    pub fn fastest(profile: &Profile) -> Nanos {
        let read = nanos(profile.read_command_us) + transfer(4096, profile.bus_read_mb_s);
        let write = nanos(profile.write_command_us) + transfer(4096, profile.bus_write_mb_s);
        if profile.cache == Cache::None { read } else { read.min(write) }
    }

    fn precondition(&mut self) {
        let pages = self.bytes / PAGE as u64;
        let mut random = Stream::new(self.seed, 2);
        let unit = self.unit() as u64;
        for count in 0..3 * pages {
            let page = if count < pages { count } else { random.below(pages) };
            if count % unit == 0 {
                self.last_die = self.next_die();
            }
            self.ftl.write(page, self.last_die);
        }
        self.ftl.forget_counts();
    }

    /// Return the drive as it was at first, with the same prepared state.
    fn renewed(&mut self) -> Self {
        let mut fresh = Self::empty(&self.profile, self.bytes, self.cache, self.seed);
        // Freed first, so that at most two maps are in memory.
        self.ftl = Ftl::new(shape(&self.profile, self.bytes));
        if let Some(prepared) = self.prepared.take() {
            (fresh.ftl, fresh.last_die) = (prepared.ftl.clone(), prepared.last_die);
            fresh.prepared = Some(prepared);
        }
        fresh
    }

    fn next_die(&self) -> u32 {
        self.flash.least(self.last_die, |die| self.ftl.has_room(die))
    }

    /// Return how many pages are programmed together.
    fn unit(&self) -> usize {
        usize::try_from(self.profile.flash_page).unwrap_or(0) / PAGE * self.profile.planes as usize
    }

    /// Start waiting requests while the drive accepts them, none before `from`.
    fn admit(&mut self, from: Nanos) {
        while let Some((request, arrived)) = self.waiting.front().copied() {
            if self.active >= self.profile.queue
                || self.flush.is_some()
                || !self.take(&request, arrived.max(from))
            {
                return;
            }
            self.waiting.pop_front();
            self.active += 1;
        }
    }

    /// Start a command in the controller. Returns its start time.
    fn start(&mut self, write: bool, arrived: Nanos) -> Nanos {
        let gap = if write { self.profile.write_gap_us } else { self.profile.read_gap_us };
        let free = &mut self.free[usize::from(write)];
        let start = (*free).max(arrived);
        *free = start + nanos(gap);
        start
    }

    fn finish(&mut self, id: u64, at: Nanos) {
        self.done.push(Reverse((at, id)));
    }

    fn persisted(&mut self, sector: u64, sectors: u64, id: u64) {
        self.ready.push(Event::Persisted { sector, sectors, id });
    }

    /// Account for idle time until `now`: idle dies move data from the SLC cache to its final location.
    fn fold(&mut self, now: Nanos) {
        // Pages that wait for a full unit do not keep the dies busy.
        if self.active == 0 && self.used == self.open.len() && now > self.idle_since {
            let time = (self.profile.program_us + self.profile.read_us) * 1e3;
            let rate = f64::from(self.profile.dies) * self.unit() as f64 / time;
            let moved = whole((now - self.idle_since) as f64 * rate).min(self.slc.0);
            self.slc.0 -= moved;
            self.folded += moved;
        }
        self.idle_since = now;
    }

    fn programmed(&mut self, at: Nanos, program: &Program) {
        for (page, id) in &program.pages {
            self.used -= 1;
            if let Some(count) = self.buffered.get_mut(page) {
                *count -= 1;
                if *count == 0 {
                    self.buffered.remove(page);
                }
            }
            if self.cache != Cache::Protected {
                self.persisted(page * PAGE_SECTORS, PAGE_SECTORS, *id);
            }
            if let Some(left) = self.through.get_mut(id) {
                *left -= 1;
                if *left == 0 {
                    self.through.remove(id);
                    self.finish(*id, at + nanos(self.profile.write_command_us));
                }
            }
        }
        if self.used == 0 {
            if let Some(id) = self.flush.take() {
                self.finish(id, at + nanos(self.profile.write_command_us));
            }
        }
    }
}
