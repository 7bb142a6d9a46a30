//! What is measured of each flowop. Threads note latencies by themselves and now and then sort them into
//! what all threads of a flowop share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::program::FlowopInfo;
use fslab_engine::measure::histogram::{Latencies, Summary};

/// How many latencies a thread notes before it shares them.
const NOTED: usize = 64;
/// How many powers of two of nanoseconds a histogram has.
pub(crate) const POWERS: usize = 48;

/// What one thread has for itself: no cache line of it is also that of another (processors fetch two at once).
#[derive(Debug)]
#[repr(align(128))]
struct Own<T>(T);

/// What one thread has done with one flowop since it last shared it.
#[derive(Debug, Default)]
struct Note {
    bytes: u64,
    latencies: Vec<u64>,
    /// From the scheduled time on, where a rate limits the thread.
    scheduled: Vec<u64>,
}

/// What all threads have done with one flowop.
#[derive(Debug, Clone)]
pub(crate) struct Total {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) sum_ns: u64,
    pub(crate) min_ns: u64,
    pub(crate) latencies: Latencies,
    pub(crate) scheduled: Latencies,
    pub(crate) powers: Option<Box<[u64; POWERS]>>,
    /// For `testrandvar`: count, sum, sum of squares.
    pub(crate) drawn: (u64, f64, f64),
}

impl Total {
    fn new(histogram: bool) -> Self {
        Self {
            count: 0,
            bytes: 0,
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

    /// Mean, percentiles and maximum.
    pub(crate) fn summary(&mut self) -> Option<Summary> {
        self.latencies.summary()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The measurements of all threads.
#[derive(Debug)]
pub(crate) struct Statistics {
    notes: Vec<Own<Mutex<Vec<Note>>>>,
    totals: Vec<Mutex<Total>>,
    histogram: bool,
}

impl Statistics {
    /// What a thread notes of one flowop, once it has done it a few times.
    pub(super) const BYTES: usize = size_of::<Note>() + NOTED * size_of::<u64>();

    pub(crate) fn new(flowops: &[FlowopInfo], threads: usize, histogram: bool) -> Self {
        let notes = || Own(Mutex::new(flowops.iter().map(|_| Note::default()).collect()));
        Self {
            notes: (0..threads).map(|_| notes()).collect(),
            totals: flowops.iter().map(|_| Mutex::new(Total::new(histogram))).collect(),
            histogram,
        }
    }

    /// One more done by this thread, which was so late when its event let it go on, if events do.
    #[inline]
    pub(crate) fn record(&self, thread: usize, flowop: usize, latency: u64, late: Option<u64>, bytes: u64) {
        let mut notes = locked(&self.notes[thread].0);
        let note = &mut notes[flowop];
        note.bytes += bytes;
        note.latencies.push(latency);
        note.scheduled.extend(late.map(|late| latency + late));
        if note.latencies.len() >= NOTED {
            locked(&self.totals[flowop]).add(note);
        }
    }

    /// Bytes that were moved by what did not come to its end.
    pub(crate) fn moved(&self, thread: usize, flowop: usize, bytes: u64) {
        locked(&self.notes[thread].0)[flowop].bytes += bytes;
    }

    /// One more value of a random variable.
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

    /// All that was done since it was cleared.
    pub(crate) fn read(&self) -> Vec<Total> {
        self.share_all();
        self.totals.iter().map(|total| locked(total).clone()).collect()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.share_all();
        for total in &self.totals {
            *locked(total) = Total::new(self.histogram);
        }
    }
}
