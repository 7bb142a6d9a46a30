//! Latency histograms (HDR histograms with two significant digits), with exact mean and maximum.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Two digits keep a histogram small (36 KiB, of which few parts are used), so that the measured work keeps most of the
/// L1 cache.
const SIGNIFICANT_DIGITS: u8 = 2;
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Number of latencies collected before they are added to the histogram. System calls evict the histogram from the L1
/// cache, so appending to a list costs less than updating a bucket.
pub(super) const NOTED: usize = 256;
/// Time that sorting takes on the fake clock of tests.
#[cfg(test)]
pub(super) const SORTING: u64 = 1_000_000;

/// Latencies in nanoseconds, from 1 ns to one hour. Longer ones count as one hour in percentiles.
#[derive(Debug, Clone)]
pub struct Latencies {
    noted: Vec<u32>,
    buckets: Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let buckets = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS);
        let buckets = buckets.expect("the bounds are constants that fit");
        Self { noted: Vec::with_capacity(NOTED), buckets, sum_ns: 0, max_ns: 0 }
    }
}

impl Latencies {
    /// Add one latency. Returns true if the collected latencies were sorted into the histogram. This takes some
    /// microseconds, which the caller must not attribute to any system call.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) -> bool {
        match u32::try_from(nanoseconds) {
            Ok(short) => self.noted.push(short),
            Err(_) => self.sort_in(nanoseconds),
        }
        let full = self.noted.len() >= NOTED;
        if full {
            self.settle();
        }
        full
    }

    /// Sort the collected latencies into the histogram.
    #[inline(never)]
    fn settle(&mut self) {
        let mut noted = std::mem::take(&mut self.noted);
        for nanoseconds in noted.drain(..) {
            self.sort_in(nanoseconds.into());
        }
        self.noted = noted;
        #[cfg(test)]
        super::clock::fake::spend(SORTING);
    }

    #[inline]
    fn sort_in(&mut self, nanoseconds: u64) {
        self.buckets.saturating_record(nanoseconds);
        self.sum_ns += nanoseconds;
        self.max_ns = self.max_ns.max(nanoseconds);
    }

    /// Add all latencies of another thread.
    pub fn merge(&mut self, mut other: Self) {
        other.settle();
        self.buckets.add(&other.buckets).expect("all histograms have the same bounds");
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Return the number of latencies.
    pub fn count(&self) -> u64 {
        self.buckets.len() + self.noted.len() as u64
    }

    /// Return mean, percentiles and maximum; `None` if no latency was recorded.
    pub fn summary(&mut self) -> Option<Summary> {
        self.settle();
        if self.count() == 0 {
            return None;
        }
        let at = |percentile| self.buckets.value_at_percentile(percentile).min(self.max_ns);
        Some(Summary {
            mean: self.sum_ns as f64 / self.count() as f64,
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p99_9: at(99.9),
            p99_99: at(99.99),
            max: self.max_ns,
        })
    }
}

/// A distribution of latencies in nanoseconds. Percentiles are within 1 %; mean and maximum are exact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: u64,
    /// Maximum.
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_is_unknown() {
        assert_eq!(Latencies::default().summary(), None);
    }

    #[test]
    fn percentiles_of_one_to_a_thousand() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|ns| _ = latencies.record(ns));
        let summary = latencies.summary().unwrap();
        assert!((summary.mean - 500.5).abs() < 1e-9);
        assert_eq!(summary.max, 1000);
        for (found, expected) in [(summary.p50, 500.0), (summary.p90, 900.0), (summary.p99, 990.0)] {
            assert!((found as f64 / expected - 1.0).abs() < 0.01, "{found} for {expected}");
        }
    }

    #[test]
    fn merging_is_recording_everything() {
        let (mut left, mut right, mut all) =
            (Latencies::default(), Latencies::default(), Latencies::default());
        for ns in [5, 70, 1_000_000] {
            left.record(ns);
            right.record(ns * 3);
            all.record(ns);
            all.record(ns * 3);
        }
        left.merge(right);
        assert_eq!(left.summary(), all.summary());
    }
}
