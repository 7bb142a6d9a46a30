//! Number of operations per time interval, as a series of bounded length.

use serde::Serialize;

use super::clock::seconds;

/// Maximum number of intervals: 512 KiB per thread.
const MOST: usize = 1 << 16;

/// Number of operations that ended in each interval since the barrier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Length of an interval: the requested length, doubled until the maximum number of intervals is not exceeded.
    pub interval_seconds: f64,
    /// One count per interval. The last interval may be incomplete.
    pub counts: Vec<u64>,
}

/// The series of one worker, or the sum over several.
#[derive(Debug, Clone)]
pub(super) struct Intervals {
    length_ns: u64,
    counts: Vec<u64>,
}

impl Intervals {
    pub(super) fn new(length_ns: u64) -> Self {
        Self { length_ns: length_ns.max(1), counts: Vec::new() }
    }

    /// Count an operation that ended `after_ns` nanoseconds after the barrier.
    #[inline]
    pub(super) fn count(&mut self, after_ns: u64) {
        while after_ns / self.length_ns >= MOST as u64 {
            self.widen();
        }
        let index = usize::try_from(after_ns / self.length_ns).unwrap_or(MOST - 1);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Double the interval length by merging pairs of intervals.
    #[cold]
    fn widen(&mut self) {
        self.length_ns = self.length_ns.saturating_mul(2);
        self.counts = self.counts.chunks(2).map(|two| two.iter().sum()).collect();
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        while self.length_ns < other.length_ns {
            self.widen();
        }
        while other.length_ns < self.length_ns {
            other.widen();
        }
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    pub(super) fn report(self) -> Series {
        Series { interval_seconds: seconds(self.length_ns), counts: self.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// One worker has one operation per second for a week; the other ends after ten operations.
    #[test]
    fn a_long_run_has_longer_intervals_and_no_more_of_them() {
        let (mut long, mut short) = (Intervals::new(MILLISECOND), Intervals::new(MILLISECOND));
        for second in 0..7 * 24 * 3600 {
            long.count(second * 1000 * MILLISECOND);
        }
        for second in 0..10 {
            short.count(second * 1000 * MILLISECOND);
        }
        assert_eq!((short.length_ns, short.counts.len()), (MILLISECOND, 9001));
        assert!(long.counts.len() <= MOST && long.counts.len() > MOST / 2);
        assert_eq!(long.length_ns, MILLISECOND << 14, "604,800,000 ms in 65,536 intervals of 2^14 ms");
        for (mut one, other) in [(long.clone(), short.clone()), (short, long)] {
            one.merge(other);
            let series = one.report();
            assert!((series.interval_seconds - 16.384).abs() < 1e-9);
            assert_eq!(series.counts.iter().sum::<u64>(), 7 * 24 * 3600 + 10);
            assert_eq!(series.counts[0], 17 + 10);
        }
    }
}
