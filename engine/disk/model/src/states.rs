//! Crash states: what a disk may contain after a power cut at a given point of its log.
//!
//! A state starts from the contents at the start of the log and applies writes in the order of their completion, so
//! that old data never replaces newer data. Writes that the last completed flush covers are always applied. Later
//! writes are at risk: all, none, or any part of them may be on the disk. Without a volatile cache, all acknowledged
//! writes are applied, and only those that the cut met in flight are at risk.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use fslab_engine::random::Stream;

use crate::drive::Op;
use crate::log::{FAILED, FAULT, IGNORED, Log, NO_DATA, Record};
use crate::{Nanos, PAGE, SECTOR, index};

/// How a state treats the writes at risk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// All are applied.
    Kept,
    /// None is applied.
    Lost,
    /// Each is applied or not, at random. The value is the seed.
    Random(u64),
    /// Each part of a write is applied or not, at random. The values are the seed and the bytes of a part.
    Torn(u64, u64),
    /// All are applied except these rows of the log.
    Without(Vec<usize>),
}

/// The pages that are not zero.
pub type Pages = HashMap<u64, Box<[u8]>>;

/// A state, as a difference to `Crash::pages`, which all states share.
pub struct State {
    /// Rows of the log that are at risk.
    pub at_risk: Vec<usize>,
    /// Rows at risk that are not, or not completely, applied.
    pub lost: Vec<usize>,
    /// Pages that differ from `Crash::pages`.
    pub changed: Pages,
}

/// A log, and the durable contents of the disk.
pub struct Crash {
    base: Pages,
    rows: Vec<Option<Record>>,
    /// What the disk acknowledged is durable.
    durable: bool,
    data: Vec<u8>,
    pages: Pages,
    /// Durable rows before this one are in `pages`.
    applied: usize,
}

impl Crash {
    /// Prepare crash states from the contents at the start of the log, the log, and the data of the writes.
    pub fn new(base: Pages, log: Log, data: Vec<u8>) -> Self {
        let Log { rows, durable, .. } = log;
        Self { pages: base.clone(), base, rows, durable, data, applied: 0 }
    }

    /// Return the number of rows. A cut is before a row or after the last one.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Return the durable contents of the disk at the last state.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Return the state after a cut before row `cut`. Ascending cuts are fast; a descending one starts again from the
    /// base.
    pub fn state(&mut self, cut: usize, fate: &Fate) -> State {
        let covered = self.covered(cut);
        let durable = |row: &Record| row.completed <= covered;
        let first = self.rows[..cut]
            .iter()
            .position(|row| row.as_ref().is_some_and(|row| row.changes() && !durable(row)));
        let first = first.unwrap_or(cut);
        self.advance(first);
        let mut state = State { at_risk: Vec::new(), lost: Vec::new(), changed: Pages::new() };
        for number in (first..cut).chain(self.in_flight(cut)) {
            match &self.rows[number] {
                // A row is logged when the disk begins it: one that a fault delays precedes rows that completed earlier.
                Some(row) if row.changes() && number < cut && durable(row) => {
                    self.take(number, &Fate::Kept, &mut state);
                }
                Some(row) if row.changes() => {
                    state.at_risk.push(number);
                    self.take(number, fate, &mut state);
                }
                _ => {}
            }
        }
        state
    }

    /// Return the rows behind `cut` that had arrived when the request of row `cut` was about to complete. A disk with a
    /// volatile cache has none at risk: whether it acknowledges a write tells nothing of where the write is.
    fn in_flight(&self, cut: usize) -> impl Iterator<Item = usize> + use<> {
        let at = match self.rows.get(cut) {
            // The row of a request that a fault delays was logged when the disk began it.
            Some(Some(row)) if self.durable && row.flags & FAULT != 0 => Some(row.submitted + 1),
            Some(Some(row)) if self.durable => Some(row.completed),
            _ => None,
        };
        let arrived = |row: &Record, at| row.submitted < at && row.completed >= at;
        let found: Vec<_> = at.map_or(Vec::new(), |at| {
            let rows = self.rows.iter().enumerate().skip(cut);
            rows.filter(|(_, row)| row.as_ref().is_some_and(|row| arrived(row, at)))
                .map(|(number, _)| number)
                .collect()
        });
        found.into_iter()
    }

    /// Return the time up to which completed requests are durable, due to the flushes before row `cut`.
    fn covered(&self, cut: usize) -> Nanos {
        if self.durable {
            return Nanos::MAX; // a row that a fault still delays may be there, too
        }
        let flushes = self.rows[..cut]
            .iter()
            .flatten()
            .filter(|row| row.op == Op::Flush && row.flags & (FAILED | IGNORED) == 0);
        flushes.map(|row| row.submitted).max().unwrap_or(0)
    }

    /// Apply the durable rows before `to`.
    fn advance(&mut self, to: usize) {
        if to < self.applied {
            self.pages.clone_from(&self.base);
            self.applied = 0;
        }
        let mut pages = std::mem::take(&mut self.pages);
        for row in self.rows[self.applied..to].iter().flatten().filter(|row| row.changes()) {
            for (range, bytes) in self.parts(row, SECTOR) {
                put(&mut pages, range, bytes, || None);
            }
        }
        self.pages = pages;
        self.applied = to;
    }

    fn take(&self, number: usize, fate: &Fate, state: &mut State) {
        let Some(row) = &self.rows[number] else { return };
        let (mut coin, unit) = match fate {
            Fate::Torn(seed, unit) => (Stream::new(*seed, row.id), *unit),
            Fate::Random(seed) => (Stream::new(*seed, row.id), u64::MAX),
            _ => (Stream::new(0, 0), u64::MAX),
        };
        let whole = match fate {
            Fate::Kept | Fate::Torn(..) => true,
            Fate::Lost => false,
            Fate::Random(_) => coin.next_u64() & 1 == 0,
            Fate::Without(rows) => !rows.contains(&number),
        };
        let (mut decided, mut keep, mut lost) = (u64::MAX, whole, !whole);
        for (range, bytes) in self.parts(row, SECTOR) {
            let offset = range.start;
            if unit != u64::MAX && offset / unit != decided {
                decided = offset / unit;
                keep = coin.next_u64() & 1 == 0;
                lost |= !keep;
            }
            if keep {
                put(&mut state.changed, range, bytes, || self.pages.get(&(offset / PAGE as u64)).cloned());
            }
        }
        if lost {
            state.lost.push(number);
        }
    }

    /// Yield the sectors that a request changes, with their bytes, or `None` for a discard.
    fn parts(&self, row: &Record, unit: u64) -> impl Iterator<Item = (Range<u64>, Option<&[u8]>)> {
        let (start, end, data) = (row.offset, row.offset + u64::from(row.length), row.data);
        let mut at = start;
        std::iter::from_fn(move || {
            let from = at;
            at = (at / unit * unit + unit).min(end);
            let bytes = (data != NO_DATA).then(|| {
                let place = index(data + (from - start));
                &self.data[place..place + index(at - from)]
            });
            (from < end).then_some((from..at, bytes))
        })
    }
}

/// Change a part of one page. Zeros allocate no page, because a discard may be as large as the disk.
fn put(
    pages: &mut Pages,
    range: Range<u64>,
    bytes: Option<&[u8]>,
    below: impl FnOnce() -> Option<Box<[u8]>>,
) {
    let page = match pages.entry(range.start / PAGE as u64) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(free) => match (below(), bytes) {
            (Some(page), _) => free.insert(page),
            (None, Some(_)) => free.insert(vec![0; PAGE].into_boxed_slice()),
            (None, None) => return,
        },
    };
    let start = index(range.start % PAGE as u64);
    let part = &mut page[start..start + index(range.end - range.start)];
    match bytes {
        Some(bytes) => part.copy_from_slice(bytes),
        None => part.fill(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::header;

    /// Build a log. `Some(page)` is a write; the n-th row fills its page with the byte n. `None` is a flush.
    fn log(rows: &[Option<u64>], flags: u8) -> (Vec<u8>, Vec<u8>) {
        let (mut log, mut data) = (header(1 << 20, 0, false).to_vec(), Vec::new());
        for (at, row) in (1..).zip(rows) {
            let page = row.unwrap_or(0);
            let record = Record {
                id: at,
                submitted: at * 10,
                completed: at * 10 + 5,
                offset: page * PAGE as u64,
                data: if row.is_some() { data.len() as u64 } else { NO_DATA },
                length: if row.is_some() { 4096 } else { 0 },
                epoch: 0,
                phase: 0,
                op: if row.is_some() { Op::Write } else { Op::Flush },
                flags: if row.is_some() { 0 } else { flags },
            };
            log.extend(record.to_bytes());
            if row.is_some() {
                data.extend([u8::try_from(at).expect("small"); PAGE]);
            }
        }
        (log, data)
    }

    fn crash(rows: &[Option<u64>], flags: u8) -> Crash {
        let (log, data) = log(rows, flags);
        let log = Log::parse(&log, data.len() as u64).expect("a log");
        Crash::new(Pages::from([(9, vec![99; PAGE].into_boxed_slice())]), log, data)
    }

    /// Return the first byte of a page of a state.
    fn byte(crash: &Crash, state: &State, page: u64) -> u8 {
        state.changed.get(&page).or_else(|| crash.pages().get(&page)).map_or(0, |page| page[0])
    }

    #[test]
    fn what_a_flush_covers_is_there() {
        let mut crash = crash(&[Some(0), Some(9), None, Some(0), Some(1)], 0);
        let state = crash.state(5, &Fate::Lost);
        assert_eq!((state.at_risk.as_slice(), state.lost.as_slice()), ([3, 4].as_slice(), [3, 4].as_slice()));
        assert_eq!([0, 1, 9].map(|page| byte(&crash, &state, page)), [1, 0, 2]);
        let state = crash.state(5, &Fate::Without(vec![3]));
        assert_eq!([0, 1, 9].map(|page| byte(&crash, &state, page)), [1, 5, 2]);
        let state = crash.state(5, &Fate::Kept);
        assert_eq!([0, 1, 9].map(|page| byte(&crash, &state, page)), [4, 5, 2]);
    }

    #[test]
    fn what_a_flush_covers_is_there_also_after_a_row_that_completes_late() {
        let (log, data) = log(&[Some(0), Some(1), None, Some(1)], 0);
        let mut log = Log::parse(&log, data.len() as u64).expect("a log");
        log.rows[0].as_mut().expect("a write").completed = 1_000;
        let mut crash = Crash::new(Pages::new(), log, data);
        let state = crash.state(4, &Fate::Lost);
        assert_eq!(state.at_risk, [0, 3]);
        assert_eq!([0, 1].map(|page| byte(&crash, &state, page)), [0, 2]);
        let state = crash.state(4, &Fate::Without(vec![0]));
        assert_eq!([0, 1].map(|page| byte(&crash, &state, page)), [0, 4]);
    }

    #[test]
    fn a_discard_takes_what_it_covers_and_no_memory() {
        let row = |op, offset, length| {
            let (id, submitted, completed, data, epoch, phase, flags) = (1, 1, 2, NO_DATA, 0, 0, 0);
            Some(Record { id, submitted, completed, offset, data, length, epoch, phase, op, flags })
        };
        let base = || Pages::from([(9, vec![99; PAGE].into_boxed_slice())]);
        let rows = vec![row(Op::Discard, 0, 9 * 4096 + 10), row(Op::Discard, 10 * 4096 - 5, 1 << 30)];
        let mut crash = Crash::new(base(), Log { size: 1 << 40, durable: false, rows }, Vec::new());
        let page = crash.state(2, &Fate::Kept).changed;
        assert_eq!(page.keys().collect::<Vec<_>>(), [&9]);
        let mut left = vec![99; PAGE];
        left[..10].fill(0);
        left[PAGE - 5..].fill(0);
        assert_eq!(page[&9].as_ref(), left);
    }

    #[test]
    fn a_torn_discard_is_there_in_part() {
        let base: Pages = (0..8).map(|page| (page, vec![99; PAGE].into_boxed_slice())).collect();
        let (id, submitted, completed, data, epoch, phase, flags) = (1, 1, 2, NO_DATA, 0, 0, 0);
        let (op, offset, length) = (Op::Discard, 0, 8 * 4096);
        let row = Record { id, submitted, completed, offset, data, length, epoch, phase, op, flags };
        let mut crash =
            Crash::new(base, Log { size: 1 << 40, durable: false, rows: vec![Some(row)] }, Vec::new());
        let state = crash.state(1, &Fate::Torn(1, 4096));
        let gone = (0..8).filter(|page| byte(&crash, &state, *page) == 0).count();
        assert!((1..8).contains(&gone), "{gone} of 8 pages");
        assert_eq!(state.lost, [0]);
    }

    #[test]
    fn what_a_disk_without_a_volatile_cache_acknowledged_is_there_and_what_was_in_flight_is_at_risk() {
        let (log, data) = log(&[Some(0), Some(1), Some(2), Some(3)], 0);
        let mut log = Log { durable: true, ..Log::parse(&log, data.len() as u64).expect("a log") };
        let row = |log: &Log, at: usize| log.rows[at].expect("a write");
        log.rows[2] = Some(Record { submitted: row(&log, 1).submitted, ..row(&log, 2) });
        let mut crash = Crash::new(Pages::new(), log, data);
        let state = crash.state(1, &Fate::Lost);
        assert_eq!((state.at_risk.as_slice(), state.lost.as_slice()), ([1, 2].as_slice(), [1, 2].as_slice()));
        assert_eq!([0, 1, 2, 3].map(|page| byte(&crash, &state, page)), [1, 0, 0, 0]);
        let state = crash.state(1, &Fate::Without(vec![1]));
        assert_eq!([0, 1, 2, 3].map(|page| byte(&crash, &state, page)), [1, 0, 3, 0]);
        let state = crash.state(3, &Fate::Lost);
        assert_eq!(state.at_risk, [3], "an acknowledged write is not");
        assert_eq!([0, 1, 2, 3].map(|page| byte(&crash, &state, page)), [1, 2, 3, 0]);
        assert_eq!(crash.state(4, &Fate::Lost).at_risk, [0; 0]);
    }

    #[test]
    fn an_earlier_cut_starts_from_the_base() {
        let mut crash = crash(&[Some(9), None, Some(9), None], 0);
        crash.state(4, &Fate::Kept);
        let state = crash.state(1, &Fate::Lost);
        assert_eq!(byte(&crash, &state, 9), 99);
    }

    #[test]
    fn a_flush_that_was_ignored_covers_nothing() {
        let mut crash = crash(&[Some(0), None, Some(1)], IGNORED);
        assert_eq!(crash.state(3, &Fate::Kept).at_risk, [0, 2]);
    }

    #[test]
    fn a_torn_write_is_there_in_part_and_again_the_same() {
        let mut crash = crash(&[Some(0)], 0);
        let torn: Vec<Vec<u8>> = [0, 1, 1]
            .map(|seed| {
                let state = crash.state(1, &Fate::Torn(seed, 512));
                state.changed.get(&0).map_or(Vec::new(), |page| page.iter().step_by(512).copied().collect())
            })
            .into();
        assert_eq!(torn[1], torn[2]);
        assert_ne!(torn[0], torn[1]);
        assert!(torn[1].contains(&0) && torn[1].contains(&1));
        let whole = crash.state(1, &Fate::Torn(1, 4096));
        assert!(whole.changed.get(&0).is_none_or(|page| page.iter().all(|byte| *byte == 1)));
    }
}
