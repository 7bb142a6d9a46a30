//! One measured phase: workers that make what they need, then all start at one barrier, and what follows
//! them within the measured time, such as a final `syncfs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Measure;
use super::clock::{now_ns, seconds};
use super::cpu::CpuTime;
use super::gate::Gate;
use super::intervals::Intervals;
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
pub const NOTHING: Option<fn(&mut Finish) -> Result<()>> = None;

/// What follows the workers, within the measured time.
#[derive(Debug, Default)]
pub struct Finish {
    sync_ns: Option<u64>,
}

impl Finish {
    /// Does the final sync, which is measured by itself.
    pub fn sync(&mut self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let start = now_ns();
        sync()?;
        self.sync_ns = Some(self.sync_ns.unwrap_or(0) + (now_ns() - start));
        Ok(())
    }
}

/// Says that workers need nothing that takes time to make.
#[cfg(test)]
#[expect(clippy::unnecessary_wraps, reason = "as preparations are")]
pub(crate) fn unprepared(_worker: usize) -> Result<()> {
    Ok(())
}

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
    /// Makes what each worker needs with `prepare`, on its own thread; then, from one barrier on, runs `work`
    /// with the worker's number, then `finish` if it is given. All but the preparation is measured. Returns
    /// the measurements and what each worker returned, in order. A single worker needs no thread of its own:
    /// the caller's still has in its processor's cache what it has just worked on.
    ///
    /// # Errors
    /// The first worker's own error; the others stop at their next file, or do not start at all.
    pub fn run<S, T, P, W, F>(&self, prepare: P, work: W, finish: Option<F>) -> Result<(Operation, Vec<T>)>
    where
        T: Send,
        P: Fn(usize) -> Result<S> + Sync,
        W: Fn(usize, S, &mut Recorder<'_>) -> Result<T> + Sync,
        F: FnOnce(&mut Finish) -> Result<()>,
    {
        self.run_from(|| {}, prepare, work, finish)
    }

    /// As [`Phase::run`]; `go` is called when all workers are ready, before they work.
    ///
    /// # Errors
    /// As of [`Phase::run`].
    pub fn run_from<S, T, P, W, F>(
        &self,
        go: impl FnOnce(),
        prepare: P,
        work: W,
        finish: Option<F>,
    ) -> Result<(Operation, Vec<T>)>
    where
        T: Send,
        P: Fn(usize) -> Result<S> + Sync,
        W: Fn(usize, S, &mut Recorder<'_>) -> Result<T> + Sync,
        F: FnOnce(&mut Finish) -> Result<()>,
    {
        let worked = self.run_workers(go, &prepare, &work)?;
        let (parts, results): (Vec<_>, Vec<_>) =
            worked.into_iter().map(|w| ((w.tally, w.cpu, w.started, w.finished), w.result)).unzip();
        let values = first_error_or_all(results)?;
        let (mut finished, mut cpu, mut end) = (Finish::default(), CpuTime::default(), None);
        if let Some(finish) = finish {
            let before = CpuTime::of_this_thread();
            finish(&mut finished)?;
            end = Some(now_ns());
            cpu = CpuTime::of_this_thread() - before;
        }
        Ok((self.report(parts, end, finished.sync_ns, cpu), values))
    }

    fn run_workers<S, T, P, W>(&self, go: impl FnOnce(), prepare: &P, work: &W) -> Result<Vec<Worked<T>>>
    where
        T: Send,
        P: Fn(usize) -> Result<S> + Sync,
        W: Fn(usize, S, &mut Recorder<'_>) -> Result<T> + Sync,
    {
        let cancelled = AtomicBool::new(false);
        if self.threads == 1 {
            let pass = |ready| {
                if ready {
                    go();
                }
                ready
            };
            return Ok(vec![self.worker(0, pass, &cancelled, prepare, work)]);
        }
        let gate = Gate::default();
        let worker = |index| self.worker(index, |ready| gate.pass(ready), &cancelled, prepare, work);
        thread::scope(|scope| {
            let worker = &worker;
            let spawn = |index| thread::Builder::new().spawn_scoped(scope, move || worker(index));
            let handles: Vec<_> = (0..self.threads).map_while(|index| spawn(index).ok()).collect();
            gate.open(handles.len(), self.threads, go);
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

    /// One worker, from its preparation to its end; `pass` says whether all are ready once it is.
    fn worker<S, T>(
        &self,
        index: usize,
        pass: impl FnOnce(bool) -> bool,
        cancelled: &AtomicBool,
        prepare: impl Fn(usize) -> Result<S>,
        work: impl Fn(usize, S, &mut Recorder<'_>) -> Result<T>,
    ) -> Worked<T> {
        let mut recorder = Recorder::new(self.measure, cancelled);
        let prepared = prepare(index);
        let go = pass(prepared.is_ok());
        let prepared = prepared.and_then(|prepared| go.then_some(prepared).ok_or(Error::Cancelled));
        let cpu_before = CpuTime::of_this_thread();
        let started = now_ns();
        recorder.start(started);
        let result = prepared.and_then(|prepared| work(index, prepared, &mut recorder));
        let finished = now_ns();
        if result.is_err() {
            cancelled.store(true, Ordering::Relaxed);
        }
        let cpu = CpuTime::of_this_thread() - cpu_before;
        Worked { tally: recorder.tally, cpu, started, finished, result }
    }

    fn report(
        &self,
        parts: Vec<(Tally, CpuTime, u64, u64)>,
        end: Option<u64>,
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
        let seconds_all = seconds(end.unwrap_or(last) - start);
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
            series: total.series.map(Intervals::report),
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

#[cfg(test)]
mod tests;
