//! What one worker records: counts, bytes, latencies, a time series. No worker shares its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clock::now_ns;
use super::histogram::Latencies;
use super::intervals::Intervals;
use super::syscall::{Syscall, SyscallSummary};
use super::{Detail, Measure};
use crate::error::{Error, Result};
use crate::stop;

/// Records the work of one thread. `begin` starts the clock, `lap` ends one system call, `end` ends
/// the operation and starts the next one, so that work back to back needs one reading per lap.
#[derive(Debug)]
pub struct Recorder<'a> {
    detail: Detail,
    phase_start: u64,
    operation_start: u64,
    lap_start: u64,
    cancelled: &'a AtomicBool,
    pub(super) tally: Tally,
}

/// What a worker has recorded.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) operations: Latencies,
    pub(super) syscalls: Vec<Option<Box<Latencies>>>,
    /// The class whose latency is the operation's own, because there is no other call in it.
    pub(super) sole: Option<Syscall>,
    /// `None` unless asked for.
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

    /// Fails when a signal asked for the end or another worker failed. Call it before each file.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        stop::check()
    }

    /// Starts an operation now; needed only where time has passed since the last `end`.
    #[inline]
    pub fn begin(&mut self) {
        if self.detail > Detail::Off {
            self.operation_start = now_ns();
            self.lap_start = self.operation_start;
        }
    }

    /// Ends one system call of the operation under way.
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

    /// Takes what has passed since out of the operation under way and of its next lap: it was the
    /// recorder's own work.
    #[inline(never)]
    fn leave_out_since(&mut self, then: u64) {
        let spent = now_ns() - then;
        self.operation_start += spent;
        self.lap_start += spent;
    }

    /// Leaves out of the next lap what was not a system call of any class. It stays in the operation.
    #[inline]
    pub fn skip(&mut self) {
        if self.detail == Detail::Syscalls {
            self.lap_start = now_ns();
        }
    }

    /// Ends the operation: one more done, with this many bytes beside those that were counted as they were moved.
    #[inline]
    pub fn end(&mut self, bytes: u64) {
        if self.detail == Detail::Off {
            return self.done(bytes);
        }
        // The last lap ended here, unless the operation had none.
        let lapped = self.lap_start > self.operation_start;
        let now = if lapped { self.lap_start } else { now_ns() };
        self.ended(now);
        self.done(bytes);
    }

    /// Notes the latency of an operation that ended now, and starts the next one.
    #[inline]
    fn ended(&mut self, now: u64) {
        let sorted = self.tally.operations.record(now - self.operation_start);
        self.operation_start = now;
        self.lap_start = now;
        if sorted {
            self.leave_out_since(now);
        }
    }

    /// Ends an operation that is one system call: its latency is that of the class.
    #[inline]
    pub fn end_sole(&mut self, class: Syscall, bytes: u64) {
        self.tally.sole = Some(class);
        if self.detail > Detail::Off {
            self.ended(now_ns());
        }
        self.done(bytes);
    }

    /// Counts bytes as they are moved: those of a file that fails later too, whose time counts as well.
    #[inline]
    pub fn moved(&mut self, bytes: usize) {
        self.tally.bytes += bytes as u64;
    }

    /// Counts a file that vanished or refused, and goes on.
    pub fn failed(&mut self) {
        self.tally.errors += 1;
        self.begin();
    }

    /// What was recorded so far: the operations, and the classes of system call.
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

    /// Whatever sorting takes, no call and no operation is longer for it.
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
