//! The drive's memory: written data that is not yet on the medium, sorted by position, and data that was read.

use std::collections::{BTreeMap, VecDeque};

/// Written data that is not on the medium: disjoint runs of sectors, each with its newest request. A run that is added
/// replaces what it overlaps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dirty {
    runs: BTreeMap<u64, (u64, u64)>,
    sectors: u64,
}

impl Dirty {
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Return the runs that overlap `sector..end`, whole, in ascending order: first sector, end, value.
    pub(crate) fn overlapping(&self, sector: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let mut met: Vec<_> = self
            .runs
            .range(..end)
            .rev()
            .take_while(|(_, (stop, _))| *stop > sector)
            .map(|(start, (stop, value))| (*start, *stop, *value))
            .collect();
        met.reverse();
        met
    }

    /// Return the parts of runs that are in `sector..end`, in ascending order: first sector, end, value.
    pub(crate) fn within(&self, sector: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let met = self.overlapping(sector, end).into_iter();
        met.map(|(start, stop, value)| (start.max(sector), stop.min(end), value)).collect()
    }

    /// Return whether it contains all of `sector..end`.
    pub(crate) fn covers(&self, sector: u64, end: u64) -> bool {
        self.within(sector, end).iter().map(|(start, stop, _)| stop - start).sum::<u64>() == end - sector
    }

    /// Add a run. It replaces what it overlaps.
    pub(crate) fn insert(&mut self, sector: u64, end: u64, value: u64) {
        self.remove(sector, end);
        self.runs.insert(sector, (end, value));
        self.sectors += end - sector;
    }

    /// Remove a range.
    pub(crate) fn remove(&mut self, sector: u64, end: u64) {
        for (start, stop, value) in self.overlapping(sector, end) {
            self.runs.remove(&start);
            self.sectors -= stop - start;
            for (start, stop) in [(start, stop.min(sector)), (start.max(end), stop)] {
                if start < stop {
                    self.runs.insert(start, (stop, value));
                    self.sectors += stop - start;
                }
            }
        }
    }

    /// Return the runs that start at `sector` or later: first sector, end, value.
    pub(crate) fn from(&self, sector: u64) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.runs.range(sector..).map(|(start, (stop, value))| (*start, *stop, *value))
    }

    /// Return the starts of the runs from `from` on, then those before it: the elevator's order.
    pub(crate) fn ahead(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.runs.range(from..).chain(self.runs.range(..from)).map(|(start, _)| *start)
    }

    /// Return the end and the newest request of the contiguous data from `start` on. Runs are added up to `most`
    /// sectors; the first run is returned whole, even if it is longer.
    pub(crate) fn run(&self, start: u64, most: u64) -> (u64, u64) {
        let (mut end, mut newest) = (start, 0);
        for (begin, stop, id) in self.from(start) {
            if begin != end || (end > start && stop - start > most) {
                break;
            }
            end = stop;
            newest = newest.max(id);
        }
        (end, newest)
    }
}

/// Ranges of sectors that were read. The oldest range is dropped first.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    held: VecDeque<(u64, u64)>,
    most: usize,
}

impl Segments {
    pub(crate) fn new(most: usize) -> Self {
        Self { held: VecDeque::new(), most }
    }

    pub(crate) fn hold(&self, sector: u64, end: u64) -> bool {
        self.held.iter().any(|(start, stop)| *start <= sector && end <= *stop)
    }

    /// Add a range that was read. It extends a range that it continues. Each range keeps at most its last `size`
    /// sectors.
    pub(crate) fn add(&mut self, sector: u64, end: u64, size: u64) {
        if let Some(at) = self.held.iter().position(|(start, stop)| *start <= sector && sector <= *stop) {
            let (start, stop) = self.held.remove(at).expect("bug: it was found");
            let stop = stop.max(end);
            self.held.push_back((start.max(stop.saturating_sub(size)), stop));
        } else {
            self.held.push_back((sector.max(end.saturating_sub(size)), end));
        }
        while self.held.len() > self.most {
            self.held.pop_front();
        }
    }

    /// Drop the ranges that overlap these sectors, because the sectors were written.
    pub(crate) fn forget(&mut self, sector: u64, end: u64) {
        self.held.retain(|(start, stop)| *stop <= sector || end <= *start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwriting_splits_and_covers() {
        let mut dirty = Dirty::default();
        dirty.insert(0, 100, 1);
        dirty.insert(40, 60, 2);
        assert_eq!((dirty.sectors(), dirty.runs()), (100, 3));
        assert!(dirty.covers(10, 90) && !dirty.covers(90, 101));
        assert_eq!(dirty.run(0, 1000), (100, 2));
        assert_eq!(dirty.run(0, 50), (40, 1));
        dirty.remove(10, 95);
        assert_eq!(dirty.ahead(50).collect::<Vec<_>>(), [95, 0]);
        assert_eq!(dirty.sectors(), 15);
    }

    #[test]
    fn segments_grow_and_go() {
        let mut segments = Segments::new(2);
        segments.add(0, 10, 100);
        segments.add(10, 20, 100);
        assert!(segments.hold(5, 20));
        segments.add(1000, 1010, 100);
        segments.add(2000, 2010, 100);
        assert!(!segments.hold(5, 20) && segments.hold(1000, 1010));
        segments.forget(1005, 1006);
        assert!(!segments.hold(1000, 1010));
    }
}
