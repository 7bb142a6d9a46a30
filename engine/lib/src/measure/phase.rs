//! A measured phase: workers prepare, start together at a barrier and do their work. A final step such as syncfs(2) may
//! follow within the measured time.

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

/// Name, number of threads and measurement options of a phase.
#[derive(Debug, Clone, Copy)]
pub struct Phase<'a> {
    /// Name of the operation in the protocol.
    pub name: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Measurement options.
    pub measure: &'a Measure,
    /// Whether the operation transfers file contents.
    pub bandwidth: Bandwidth,
}

/// No final step.
pub const NOTHING: Option<fn(&mut Finish) -> Result<()>> = None;

/// The final step after the workers, within the measured time.
#[derive(Debug, Default)]
pub struct Finish {
    sync_ns: Option<u64>,
}

impl Finish {
    /// Run the final sync and measure its time separately. Several calls add up.
    pub fn sync(&mut self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let start = now_ns();
        sync()?;
        self.sync_ns = Some(self.sync_ns.unwrap_or(0) + (now_ns() - start));
        Ok(())
    }
}

/// Prepare nothing.
#[cfg(test)]
#[expect(clippy::unnecessary_wraps, reason = "as preparations are")]
pub(crate) fn unprepared(_worker: usize) -> Result<()> {
    Ok(())
}

/// The result of one worker.
struct Worked<T> {
    tally: Tally,
    cpu: CpuTime,
    started: u64,
    finished: u64,
    result: Result<T>,
}

impl<'a> Phase<'a> {
    /// Create a phase. Returns an error of the kind `invalid` if `threads` is 0.
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
    /// Run the phase. Each worker calls `prepare` with its number on its own thread, waits at the barrier, and calls
    /// `work`. Then the calling thread calls `finish` if it is given. All but the preparation is measured. Returns the
    /// measurements, and the values that the workers returned, in the order of their numbers. A single worker runs on
    /// the calling thread, because the cache of its CPU still contains the data used last.
    ///
    /// # Errors
    /// The error of the worker with the lowest number that did not merely stop because of another worker; kind
    /// `invalid` if not all threads can be started; the error of `finish`. After a failure, the other workers stop at
    /// their next file or do not start.
    pub fn run<S, T, P, W, F>(&self, prepare: P, work: W, finish: Option<F>) -> Result<(Operation, Vec<T>)>
    where
        T: Send,
        P: Fn(usize) -> Result<S> + Sync,
        W: Fn(usize, S, &mut Recorder<'_>) -> Result<T> + Sync,
        F: FnOnce(&mut Finish) -> Result<()>,
    {
        self.run_from(|| {}, prepare, work, finish)
    }

    /// As [`Phase::run`], but call `go` when all workers are ready, before they start working.
    ///
    /// # Errors
    /// As [`Phase::run`].
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

    /// Run one worker. `pass` takes whether this worker is ready, waits for the others, and returns whether all are
    /// ready.
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
            began_seconds: seconds(start),
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

/// Return the values of all workers, or the error of the worker with the lowest number. Other errors take precedence
/// over [`Error::Cancelled`].
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
