//! Recording of the work of one thread: counts, bytes, latencies, and a time series. Recorders are not shared between
//! threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clock::now_ns;
use super::histogram::Latencies;
use super::intervals::Intervals;
use super::syscall::{Syscall, SyscallSummary};
use super::{Detail, Measure};
use crate::error::{Error, Result};
use crate::stop;

/// A recorder of the work of one thread. `begin` starts the clock, `lap` ends one system call, `end` ends the operation
/// and starts the next one. Consecutive operations therefore need one clock reading per lap.
#[derive(Debug)]
pub struct Recorder<'a> {
    detail: Detail,
    phase_start: u64,
    operation_start: u64,
    lap_start: u64,
    cancelled: &'a AtomicBool,
    pub(super) tally: Tally,
}

/// The data recorded by one worker, or the sum over several.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) operations: Latencies,
    pub(super) syscalls: Vec<Option<Box<Latencies>>>,
    /// Class of the only system call of each operation. Its latencies are those of the operations.
    pub(super) sole: Option<Syscall>,
    /// Time series; `None` unless requested.
    pub(super) series: Option<Intervals>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(measure: &Measure, cancelled: &'a AtomicBool) -> Self {
        let syscalls = Syscall::ALL.map(|_| None).into();
        Self {
            detail: measure.latency,
            phase_start: 0,
            operation_start: 0,
            lap_start: 0,
            cancelled,
            tally: Tally { syscalls, series: measure.interval_ns.map(Intervals::new), ..Tally::default() },
        }
    }

    pub(super) fn start(&mut self, now: u64) {
        self.phase_start = now;
        self.operation_start = now;
        self.lap_start = now;
    }

    /// Return an error if a signal requested the stop or another worker failed. To be called before each file.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        stop::check()
    }

    /// Start an operation now. Needed only if other work was done since the last `end`.
    #[inline]
    pub fn begin(&mut self) {
        if self.detail > Detail::Off {
            self.operation_start = now_ns();
            self.lap_start = self.operation_start;
        }
    }

    /// End one system call of the current operation.
    #[inline]
    pub fn lap(&mut self, class: Syscall) {
        if self.detail == Detail::Syscalls {
            let now = now_ns();
            let latency = now - self.lap_start;
            let sorted = self.tally.syscalls[class as usize].get_or_insert_default().record(latency);
            self.lap_start = now;
            if sorted {
                self.leave_out_since(now);
            }
        }
    }

    /// Exclude the time since `then` from the current operation and its next lap, because the recorder itself used it.
    #[inline(never)]
    fn leave_out_since(&mut self, then: u64) {
        let spent = now_ns() - then;
        self.operation_start += spent;
        self.lap_start += spent;
    }

    /// Exclude the time since the last lap from the next lap, because it does not belong to a system call of any class.
    /// It remains part of the operation.
    #[inline]
    pub fn skip(&mut self) {
        if self.detail == Detail::Syscalls {
            self.lap_start = now_ns();
        }
    }

    /// End the operation and count it. `bytes` is added to the bytes that [`Recorder::moved`] counted.
    #[inline]
    pub fn end(&mut self, bytes: u64) {
        if self.detail == Detail::Off {
            return self.done(bytes);
        }
        // The operation ended with its last lap. If it had none, it ends now.
        let lapped = self.lap_start > self.operation_start;
        let now = if lapped { self.lap_start } else { now_ns() };
        self.ended(now);
        self.done(bytes);
    }

    /// Record the latency of the operation that ended at `now`, and start the next one.
    #[inline]
    fn ended(&mut self, now: u64) {
        let sorted = self.tally.operations.record(now - self.operation_start);
        self.operation_start = now;
        self.lap_start = now;
        if sorted {
            self.leave_out_since(now);
        }
    }

    /// End an operation that consists of one system call. Its latency is also that of the class.
    #[inline]
    pub fn end_sole(&mut self, class: Syscall, bytes: u64) {
        self.tally.sole = Some(class);
        if self.detail > Detail::Off {
            self.ended(now_ns());
        }
        self.done(bytes);
    }

    /// Count transferred bytes immediately. Those of a file that fails later are included, because its time is included
    /// as well.
    #[inline]
    pub fn moved(&mut self, bytes: usize) {
        self.tally.bytes += bytes as u64;
    }

    /// Count a file that disappeared or failed, and start the next operation.
    pub fn failed(&mut self) {
        self.tally.errors += 1;
        self.begin();
    }

    /// Return the latencies recorded so far: of operations, and of each class of system call.
    #[cfg(test)]
    pub(crate) fn told(&mut self) -> (Option<super::histogram::Summary>, BTreeMap<Syscall, SyscallSummary>) {
        let calls = self.tally.syscall_summaries(Detail::Syscalls).unwrap_or_default();
        (self.tally.operations.summary(), calls)
    }

    #[inline]
    fn done(&mut self, bytes: u64) {
        self.tally.count += 1;
        self.tally.bytes += bytes;
        if let Some(series) = &mut self.tally.series {
            let now = if self.detail > Detail::Off { self.operation_start } else { now_ns() };
            series.count(now - self.phase_start);
        }
    }
}

impl Tally {
    pub(super) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.operations.merge(other.operations);
        self.sole = self.sole.or(other.sole);
        self.syscalls.resize(self.syscalls.len().max(other.syscalls.len()), None);
        for (mine, theirs) in self.syscalls.iter_mut().zip(other.syscalls) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(*theirs);
            }
        }
        self.series = match (self.series.take(), other.series) {
            (Some(mut mine), Some(theirs)) => {
                mine.merge(theirs);
                Some(mine)
            }
            (mine, theirs) => mine.or(theirs),
        };
    }

    pub(super) fn syscall_summaries(&mut self, detail: Detail) -> Option<BTreeMap<Syscall, SyscallSummary>> {
        if detail < Detail::Syscalls {
            return None;
        }
        let classes = self.syscalls.iter_mut().zip(Syscall::ALL);
        let mut found: BTreeMap<_, _> = classes
            .filter_map(|(latencies, class)| Some((class, SyscallSummary::of(latencies.as_mut()?)?)))
            .collect();
        if let Some(sole) =
            self.sole.and_then(|class| Some((class, SyscallSummary::of(&mut self.operations)?)))
        {
            found.insert(sole.0, sole.1);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::fake;
    use super::super::histogram::NOTED;
    use super::*;

    const EACH: u64 = 700;

    fn recorded(work: impl Fn(&mut Recorder<'_>)) -> Tally {
        fake::start();
        let cancelled = AtomicBool::new(false);
        let measure = Measure { latency: Detail::Syscalls, interval_ns: None };
        let mut recorder = Recorder::new(&measure, &cancelled);
        recorder.start(now_ns());
        for _ in 0..2 * NOTED {
            work(&mut recorder);
        }
        recorder.tally
    }

    /// The time of sorting latencies must not be part of any system call or operation.
    #[test]
    fn sorting_latencies_is_in_none_of_them() {
        let sole = recorded(|recorder| {
            fake::spend(EACH);
            recorder.end_sole(Syscall::Stat, 0);
        });
        let lapped = recorded(|recorder| {
            for class in [Syscall::Open, Syscall::Read, Syscall::Close] {
                fake::spend(EACH);
                recorder.lap(class);
            }
            recorder.end(0);
        });
        let longest = |mut tally: Tally| tally.operations.summary().map(|summary| summary.max);
        assert_eq!(longest(sole), Some(EACH));
        let open = lapped.syscalls[Syscall::Open as usize].clone();
        assert_eq!(open.and_then(|mut open| open.summary()).map(|summary| summary.max), Some(EACH));
        assert_eq!(longest(lapped), Some(3 * EACH));
    }
}
