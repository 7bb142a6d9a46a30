//! Execution of a model: its threads, the data that they share, and the end of the run.

mod aio;
mod files;
mod limits;
mod metadata;
mod reading;
mod slots;
mod stats;
mod sync;
mod transfer;
mod waiting;
mod worker;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::JoinHandle;

use super::fileset::Fileset;
use super::program::{Kind, Model, ThreadSpec};
use super::random::Distribution;
use fslab_engine::contents::Contents;
use fslab_engine::document::{Bandwidth, Operation};
use fslab_engine::error::{Error, Result};
use fslab_engine::measure::clock::now_ns;
use fslab_engine::measure::cpu::CpuTime;
use fslab_engine::measure::phase::{NOTHING, Phase};
use fslab_engine::measure::{Detail, Measure};
use fslab_engine::{memory, stop};
use limits::Totals;
pub(crate) use limits::{Events, pause};
pub(crate) use stats::{POWERS, Statistics, Total};
use sync::Gate;
use worker::Worker;

/// The data that all threads of a model share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) model: Arc<Model>,
    pub(crate) filesets: Arc<Vec<Fileset>>,
    pub(crate) distributions: Arc<[Arc<Distribution>]>,
    pub(crate) seed: u64,
    /// Generator of the data that flowops write.
    pub(crate) contents: Arc<Contents>,
    pub(crate) statistics: Statistics,
    pub(crate) events: Arc<Events>,
    pub(crate) totals: Totals,
    /// Messages of `print` flowops.
    pub(crate) messages: Mutex<Vec<String>>,
    /// The first flowop that found no file in a run that should end by timeout.
    pub(crate) out_of_files: Mutex<Option<String>>,
    /// Whether a file could not be opened with `O_DIRECT`, so that the page cache was used.
    pub(crate) not_direct: AtomicBool,
    /// The first attribute found whose flowop did not open its file, because another had opened it without it.
    pub(crate) no_effect: OnceLock<String>,
    /// Fraction of the requested memory that each thread gets, at most 1.
    memory_share: f64,
    /// One gate for each instance of a thread, by the numbers of the thread and of its `block` or `semblock` flowop.
    gates: HashMap<(usize, usize), Vec<Gate>>,
    ended: AtomicBool,
    /// Number of threads that have not ended yet.
    working: AtomicUsize,
}

/// The end and the CPU time of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worked {
    /// Time of the end, by `now_ns`.
    pub(crate) finished: u64,
    pub(crate) cpu: CpuTime,
}

/// The running threads of a model.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) shared: Arc<Shared>,
    handle: JoinHandle<Result<(Operation, Vec<Worked>)>>,
    /// Time when the threads started to work, by `now_ns`.
    pub(crate) started: u64,
}

/// Input for starting the threads of a model.
pub(crate) struct Start {
    pub(crate) model: Arc<Model>,
    pub(crate) filesets: Arc<Vec<Fileset>>,
    pub(crate) distributions: Arc<[Arc<Distribution>]>,
    pub(crate) events: Arc<Events>,
    pub(crate) seed: u64,
}

impl Shared {
    fn new(start: Start) -> Self {
        let Start { model, filesets, distributions, events, seed } = start;
        let instances = model.instances();
        Self {
            statistics: Statistics::new(&model.flowops, instances, model.histogram),
            gates: gates_of(&model),
            memory_share: memory_share(&model),
            filesets,
            distributions,
            seed,
            contents: Arc::new(Contents::new(seed)),
            events,
            totals: Totals::default(),
            messages: Mutex::default(),
            out_of_files: Mutex::default(),
            not_direct: AtomicBool::new(false),
            no_effect: OnceLock::new(),
            ended: AtomicBool::new(false),
            working: AtomicUsize::new(instances),
            model,
        }
    }

    /// Return whether the threads must end: the run is over, or a signal asked the process to stop.
    #[inline]
    pub(crate) fn over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || stop::requested().is_some()
    }

    /// Ask all threads to end.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Return whether the run is over or all threads have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.over() || self.working.load(Ordering::Acquire) == 0
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "less than what was asked for"
    )]
    fn memory_of(&self, thread: &ThreadSpec) -> usize {
        (thread.memory as f64 * self.memory_share) as usize
    }
}

fn gates_of(model: &Model) -> HashMap<(usize, usize), Vec<Gate>> {
    let mut gates = HashMap::new();
    for (number, thread) in model.threads.iter().enumerate() {
        let mut pending: Vec<_> = thread.flowops.iter().collect();
        while let Some(flowop) = pending.pop() {
            pending.extend(&flowop.children);
            if matches!(flowop.kind, Kind::SemBlock | Kind::Block) {
                let gate = || Gate::new(flowop.with.highwater);
                gates.insert((number, flowop.local), (0..thread.instances).map(|_| gate()).collect());
            }
        }
    }
    gates
}

/// Return how much memory all threads need to record their flowops, in bytes.
fn notes_of(model: &Model) -> u64 {
    let of = |thread: &ThreadSpec| {
        let one = model.flowops.len().saturating_mul(Statistics::BYTES)
            + thread.count.saturating_mul(Worker::BYTES);
        (one as u64).saturating_mul(thread.instances as u64)
    };
    model.threads.iter().map(of).fold(0, u64::saturating_add)
}

/// Return the fraction of the requested memory that threads get: 1, unless they request more than half of the free
/// memory; then together they get that half. It is 1 if the amount of free memory is unknown.
fn memory_share(model: &Model) -> f64 {
    let asked = model.memory() as f64;
    match fslab_engine::memory::free() {
        Some(free) if asked > free as f64 / 2.0 => free as f64 / 2.0 / asked,
        _ => 1.0,
    }
}

impl Running {
    /// Start all threads. They start to work at the same time, when all are ready. Return an error if there is not
    /// enough memory or a thread cannot be started.
    pub(crate) fn start(start: Start) -> Result<Self> {
        memory::need("what threads note of their flowops", notes_of(&start.model))?;
        let shared = Arc::new(Shared::new(start));
        let own = Arc::clone(&shared);
        let (go, started) = mpsc::channel();
        let handle = std::thread::Builder::new().spawn(move || run_threads(&own, go));
        let handle = handle.map_err(|error| Error::Invalid(format!("cannot start a thread: {error}")))?;
        let mut running = Self { shared, handle, started: 0 };
        match started.recv() {
            Ok(started) => running.started = started,
            // The channel was closed without a start time: a thread could not start. `finish` returns its error.
            Err(mpsc::RecvError) => return Err(running.finish().err().unwrap_or(Error::Cancelled)),
        }
        Ok(running)
    }

    /// Return the fraction of the requested memory that the threads got, or `None` if they got all of it.
    pub(crate) fn memory_share(&self) -> Option<f64> {
        (self.shared.memory_share < 1.0).then_some(self.shared.memory_share)
    }

    /// Return whether the run is over or all threads have ended, even if some could not start.
    pub(crate) fn is_done(&self) -> bool {
        self.shared.is_done() || self.handle.is_finished()
    }

    /// End all threads and wait for them. Return `Interrupted` if a signal asked the process to stop, otherwise an
    /// error of a thread if one failed.
    pub(crate) fn finish(self) -> Result<Vec<Worked>> {
        self.shared.end();
        let result = self.handle.join().map_err(|_| Error::Invalid("a thread panicked".into()))?;
        stop::check()?;
        result.map(|(_, worked)| worked)
    }
}

/// Run all threads from their start to their end. Send the time when they start to work to `started`.
fn run_threads(shared: &Shared, started: mpsc::Sender<u64>) -> Result<(Operation, Vec<Worked>)> {
    let measure = Measure { latency: Detail::Off, interval_ns: None };
    let mut places = Vec::new();
    for (number, thread) in shared.model.threads.iter().enumerate() {
        places.extend((0..thread.instances).map(|instance| (number, instance)));
    }
    let phase = Phase::new("workload", places.len(), &measure, Bandwidth::Counted)?;
    let go = move || {
        shared.events.reset();
        let _ = started.send(now_ns());
    };
    let result = phase.run_from(
        go,
        |index| Worker::new(shared, index, places[index]),
        |_, mut worker, recorder| {
            let result = worker.work(recorder).and(worker.end());
            shared.working.fetch_sub(1, Ordering::AcqRel);
            if result.is_err() {
                shared.end();
            }
            result.map(|()| Worked { finished: now_ns(), cpu: worker.cpu() })
        },
        NOTHING,
    );
    shared.end();
    result
}
