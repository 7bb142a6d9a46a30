//! Disjoint runs of sectors, each with a value. A run that is added replaces what it overlaps.

use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(crate) struct Runs<T> {
    runs: BTreeMap<u64, (u64, T)>,
    sectors: u64,
}

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Self { runs: BTreeMap::new(), sectors: 0 }
    }
}

impl<T: Copy> Runs<T> {
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Return the runs that overlap `sector..end`, whole, in ascending order: first sector, end, value.
    pub(crate) fn overlapping(&self, sector: u64, end: u64) -> Vec<(u64, u64, T)> {
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
    pub(crate) fn within(&self, sector: u64, end: u64) -> Vec<(u64, u64, T)> {
        let met = self.overlapping(sector, end).into_iter();
        met.map(|(start, stop, value)| (start.max(sector), stop.min(end), value)).collect()
    }

    /// Return whether it contains all of `sector..end`.
    pub(crate) fn covers(&self, sector: u64, end: u64) -> bool {
        self.within(sector, end).iter().map(|(start, stop, _)| stop - start).sum::<u64>() == end - sector
    }

    /// Add a run. It replaces what it overlaps.
    pub(crate) fn insert(&mut self, sector: u64, end: u64, value: T) {
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
    pub(crate) fn from(&self, sector: u64) -> impl Iterator<Item = (u64, u64, T)> + '_ {
        self.runs.range(sector..).map(|(start, (stop, value))| (*start, *stop, *value))
    }

    /// Return the starts of the runs from `from` on, then those before it: the elevator's order.
    pub(crate) fn ahead(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.runs.range(from..).chain(self.runs.range(..from)).map(|(start, _)| *start)
    }
}
