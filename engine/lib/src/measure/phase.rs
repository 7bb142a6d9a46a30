//! One measured phase: workers that all start at one barrier, and what follows them within the
//! measured time, such as a final `syncfs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use super::Measure;
use super::clock::{now_ns, seconds};
use super::cpu::CpuTime;
use super::recorder::{Recorder, Tally};
use crate::document::{Bandwidth, Operation};
use crate::error::{Error, Result};

/// What the phase is called, how many threads work in it, and what is measured.
#[derive(Debug, Clone, Copy)]
pub struct Phase<'a> {
    /// The name of the operation in the protocol.
    pub name: &'static str,
    /// How many threads.
    pub threads: usize,
    /// What is measured.
    pub measure: &'a Measure,
    /// Whether bytes mean anything here.
    pub bandwidth: Bandwidth,
}

/// Says that nothing follows the workers.
pub const NOTHING: Option<fn() -> Result<()>> = None;

/// The work of one thread, over.
struct Worked<T> {
    tally: Tally,
    cpu: CpuTime,
    started: u64,
    finished: u64,
    result: Result<T>,
}

impl<'a> Phase<'a> {
    /// A phase of at least one thread.
    pub fn new(
        name: &'static str,
        threads: usize,
        measure: &'a Measure,
        bandwidth: Bandwidth,
    ) -> Result<Self> {
        if threads == 0 {
            return Err(Error::Invalid("threads must be at least 1".into()));
        }
        Ok(Self { name, threads, measure, bandwidth })
    }
}

impl Phase<'_> {
    /// Runs `work` with the worker's number on every thread, then `finish` if it is given; all of it
    /// is measured. Returns the measurements and what each worker returned, in order.
    ///
    /// # Errors
    /// The first worker's own error; the others stop at their next file.
    pub fn run<T, W, F>(&self, work: W, finish: Option<F>) -> Result<(Operation, Vec<T>)>
    where
        T: Send,
        W: Fn(usize, &mut Recorder<'_>) -> Result<T> + Sync,
        F: FnOnce() -> Result<()>,
    {
        let worked = self.run_workers(&work)?;
        let workers_end = worked.iter().map(|w| w.finished).max().unwrap_or_default();
        let (parts, results): (Vec<_>, Vec<_>) =
            worked.into_iter().map(|w| ((w.tally, w.cpu, w.started, w.finished), w.result)).unzip();
        let values = first_error_or_all(results)?;
        let cpu_before = CpuTime::of_this_thread();
        let sync_ns = finish.map(|finish| finish().map(|()| now_ns() - workers_end)).transpose()?;
        let cpu = CpuTime::of_this_thread() - cpu_before;
        Ok((self.report(parts, sync_ns, cpu), values))
    }

    fn run_workers<T, W>(&self, work: &W) -> Result<Vec<Worked<T>>>
    where
        T: Send,
        W: Fn(usize, &mut Recorder<'_>) -> Result<T> + Sync,
    {
        let gate = Gate::default();
        let cancelled = AtomicBool::new(false);
        let worker = |index: usize| {
            let mut recorder = Recorder::new(self.measure, &cancelled);
            let result = if gate.pass() { Ok(()) } else { Err(Error::Cancelled) };
            let cpu_before = CpuTime::of_this_thread();
            let started = now_ns();
            recorder.start(started);
            let result = result.and_then(|()| work(index, &mut recorder));
            let finished = now_ns();
            if result.is_err() {
                cancelled.store(true, Ordering::Relaxed);
            }
            let cpu = CpuTime::of_this_thread() - cpu_before;
            Worked { tally: recorder.tally, cpu, started, finished, result }
        };
        thread::scope(|scope| {
            let worker = &worker;
            let spawn = |index| thread::Builder::new().spawn_scoped(scope, move || worker(index));
            let handles: Vec<_> = (0..self.threads).map_while(|index| spawn(index).ok()).collect();
            gate.open(handles.len(), self.threads);
            if handles.len() < self.threads {
                return Err(Error::Invalid(format!(
                    "{} threads are more than the system lets us start; try {}",
                    self.threads,
                    handles.len()
                )));
            }
            Ok(handles.into_iter().map(|h| h.join().expect("a worker panicked, which is a bug")).collect())
        })
    }

    fn report(
        &self,
        parts: Vec<(Tally, CpuTime, u64, u64)>,
        sync_ns: Option<u64>,
        mut cpu: CpuTime,
    ) -> Operation {
        let start = parts.iter().map(|p| p.2).min().unwrap_or_default();
        let first = parts.iter().map(|p| p.3).min().unwrap_or_default();
        let last = parts.iter().map(|p| p.3).max().unwrap_or_default();
        let mut total = Tally::default();
        for (tally, used, ..) in parts {
            total.merge(tally);
            cpu += used;
        }
        let seconds_all = seconds(last - start + sync_ns.unwrap_or(0));
        Operation {
            name: self.name,
            count: total.count,
            bytes: self.bandwidth.known(total.bytes),
            errors: total.errors,
            seconds: seconds_all,
            sync_seconds: sync_ns.map(seconds),
            first_finished_seconds: seconds(first - start),
            last_finished_seconds: seconds(last - start),
            rate_per_second: rate(total.count as f64, seconds_all),
            bandwidth_bytes_per_second: self
                .bandwidth
                .known(total.bytes)
                .and_then(|bytes| rate(bytes as f64, seconds_all)),
            cpu_user_seconds: seconds(cpu.user_ns),
            cpu_system_seconds: seconds(cpu.system_ns),
            latency_ns: total.operations.summary(),
            syscalls: total.syscall_summaries(self.measure.latency),
            series: self.measure.interval_ns.map(|ns| total.series_report(ns)),
        }
    }
}

fn rate(amount: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| amount / seconds)
}

/// The values of all workers, or the error that came first to any of them.
fn first_error_or_all<T>(results: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(results.len());
    let mut failure = None;
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) if matches!(failure, None | Some(Error::Cancelled)) => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(values), Err)
}

/// A barrier that can also turn everyone away, which is needed when not all threads could be started.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    waiting: usize,
    verdict: Option<bool>,
}

impl Gate {
    /// Waits for the verdict: whether to go on.
    fn pass(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        self.changed.notify_all();
        loop {
            if let Some(verdict) = state.verdict {
                return verdict;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Once all `started` threads wait, lets them through if they are as many as `wanted`.
    fn open(&self, started: usize, wanted: usize) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .changed
            .wait_while(state, |state| state.waiting < started)
            .unwrap_or_else(PoisonError::into_inner);
        state.verdict = Some(started == wanted);
        self.changed.notify_all();
    }
}
