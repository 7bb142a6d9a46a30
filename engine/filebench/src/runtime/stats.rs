//! Measurements of each flowop. Each thread collects its latencies in a buffer of its own and adds them in batches to
//! the totals of the flowop, which all threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::program::FlowopInfo;
use fslab_engine::measure::histogram::{Latencies, Summary};

use super::aio::Which;

/// Number of latencies of a flowop that a thread collects before it adds them to the totals.
const NOTED: usize = 64;
/// Number of buckets of a histogram. Bucket n > 0 counts latencies of at least 2^(n-1) ns and less than 2^n ns, bucket
/// 0 those of 0 ns. The last bucket also counts all longer latencies.
pub(crate) const POWERS: usize = 48;

/// Data of one thread. It shares no cache line with that of another thread. The alignment is two cache lines, because
/// processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Own<T>(T);

/// Measurements of one flowop by one thread that are not yet in the totals.
#[derive(Debug, Default)]
struct Note {
    bytes: u64,
    synced: u64,
    latencies: Vec<u64>,
    /// Latencies from the scheduled time, if a rate limits the thread.
    scheduled: Vec<u64>,
}

/// Measurements of one flowop by all threads. Times are in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Total {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Number of operations that wrote to a file that was opened with `O_SYNC`.
    pub(crate) synced: u64,
    pub(crate) sum_ns: u64,
    pub(crate) min_ns: u64,
    pub(crate) latencies: Latencies,
    pub(crate) scheduled: Latencies,
    pub(crate) powers: Option<Box<[u64; POWERS]>>,
    /// Count, sum and sum of squares of the values that `testrandvar` has drawn.
    pub(crate) drawn: (u64, f64, f64),
}

impl Total {
    fn new(histogram: bool) -> Self {
        Self {
            count: 0,
            bytes: 0,
            synced: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            latencies: Latencies::default(),
            scheduled: Latencies::default(),
            powers: histogram.then(|| Box::new([0; POWERS])),
            drawn: (0, 0.0, 0.0),
        }
    }

    fn add(&mut self, note: &mut Note) {
        self.bytes += std::mem::take(&mut note.bytes);
        self.synced += std::mem::take(&mut note.synced);
        for latency in note.scheduled.drain(..) {
            self.scheduled.record(latency);
        }
        for latency in note.latencies.drain(..) {
            self.count += 1;
            self.sum_ns += latency;
            self.min_ns = self.min_ns.min(latency);
            self.latencies.record(latency);
            if let Some(powers) = &mut self.powers {
                let power = (u64::BITS - latency.leading_zeros()) as usize;
                powers[power.min(POWERS - 1)] += 1;
            }
        }
    }

    /// Return mean, percentiles and maximum of the latencies, or `None` if there are none.
    pub(crate) fn summary(&mut self) -> Option<Summary> {
        self.latencies.summary()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The measurements of all flowops by all threads.
#[derive(Debug)]
pub(crate) struct Statistics {
    notes: Vec<Own<Mutex<Vec<Note>>>>,
    totals: Vec<Mutex<Total>>,
    histogram: bool,
}

impl Statistics {
    /// Memory of the buffer of one thread for one flowop without a rate limit, in bytes.
    pub(super) const BYTES: usize = size_of::<Note>() + NOTED * size_of::<u64>();

    pub(crate) fn new(flowops: &[FlowopInfo], threads: usize, histogram: bool) -> Self {
        let notes = || Own(Mutex::new(flowops.iter().map(|_| Note::default()).collect()));
        Self {
            notes: (0..threads).map(|_| notes()).collect(),
            totals: flowops.iter().map(|_| Mutex::new(Total::new(histogram))).collect(),
            histogram,
        }
    }

    /// Record a flowop of this thread with its latency in nanoseconds and its number of bytes. `late` is the delay of
    /// the thread behind the event that it waited for, in nanoseconds, or `None` if no rate limits it.
    #[inline]
    pub(super) fn record(&self, thread: usize, which: &Which, latency: u64, late: Option<u64>, bytes: u64) {
        let flowop = which.info;
        let mut notes = locked(&self.notes[thread].0);
        let note = &mut notes[flowop];
        note.bytes += bytes;
        note.synced += u64::from(which.synced);
        note.latencies.push(latency);
        note.scheduled.extend(late.map(|late| latency + late));
        if note.latencies.len() >= NOTED {
            locked(&self.totals[flowop]).add(note);
        }
    }

    /// Add bytes that a flowop transferred before it was interrupted.
    pub(crate) fn moved(&self, thread: usize, flowop: usize, bytes: u64) {
        locked(&self.notes[thread].0)[flowop].bytes += bytes;
    }

    /// Record a value that `testrandvar` has drawn.
    pub(crate) fn drew(&self, flowop: usize, value: f64) {
        let mut total = locked(&self.totals[flowop]);
        total.drawn = (total.drawn.0 + 1, total.drawn.1 + value, total.drawn.2 + value * value);
    }

    fn share_all(&self) {
        for notes in &self.notes {
            for (note, total) in locked(&notes.0).iter_mut().zip(&self.totals) {
                locked(total).add(note);
            }
        }
    }

    /// Return all measurements since the last [`Self::clear`], by flowop.
    pub(crate) fn read(&self) -> Vec<Total> {
        self.share_all();
        self.totals.iter().map(|total| locked(total).clone()).collect()
    }

    /// Discard all measurements.
    pub(crate) fn clear(&self) {
        self.share_all();
        for total in &self.totals {
            *locked(total) = Total::new(self.histogram);
        }
    }
}
