//! A workload that is ready to run: every number known or known to be random, every name resolved.

mod kinds;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::QuitMode;
use super::random::{Distribution, Number};
use fslab_engine::document::Warning;
pub use kinds::{Class, FLOWOPS, Kind, Moves};

/// All of a workload.
#[derive(Debug)]
pub struct Program {
    /// The variables and what they were at the end.
    pub variables: BTreeMap<String, String>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// All random variables, by their number.
    pub distributions: Arc<[Arc<Distribution>]>,
    /// The lines of `usage`.
    pub usage: Vec<String>,
    /// What is known to cast doubt before anything is measured.
    pub warnings: Vec<Warning>,
}

impl Program {
    /// The memory that the threads have which work at once, at most: they have less if it is more than half of
    /// what is free.
    pub fn memory_of_threads(&self) -> u64 {
        let models = self.steps.iter().filter_map(|step| match step {
            Step::CreateProcesses(model) => Some(model.memory()),
            _ => None,
        });
        let free = fslab_engine::memory::free().unwrap_or(u64::MAX);
        models.max().unwrap_or(0).min(free / 2)
    }
}

/// One step of a workload.
#[derive(Debug, Clone)]
pub enum Step {
    /// Tells people something.
    Say(String),
    /// Waits so many seconds, while the processes work.
    Sleep(f64),
    /// Runs a shell command.
    System(String),
    /// Makes all files.
    CreateFiles(Arc<Vec<FilesetSpec>>),
    /// Starts all threads.
    CreateProcesses(Arc<Model>),
    /// Lets the threads work and measures them.
    Run(Timing),
    /// Forgets what was measured so far.
    Clear,
    /// Notes what was measured since it was last cleared.
    Snapshot(Option<String>),
    /// Sets how many events there are per second; 0 switches the limits off.
    Rate(f64),
    /// Ends all threads.
    ShutdownProcesses,
    /// Removes all files.
    ShutdownFiles,
}

/// How long a run takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// The longest; `None` until the threads are done.
    pub seconds: Option<f64>,
    /// After how long what was measured is noted, again and again.
    pub period: Option<f64>,
    /// Whether each period is measured on its own.
    pub fresh: bool,
}

/// Files that belong together.
#[derive(Debug, Clone)]
pub struct FilesetSpec {
    /// What flowops call it, and its directory.
    pub name: String,
    /// Where below the working directory it lies; empty if right in it.
    pub place: String,
    /// How many files.
    pub entries: u64,
    /// How many empty directories.
    pub leaf_directories: u64,
    /// How long each file is.
    pub size: Number,
    /// The shape of the gamma distribution of sizes with the mean `size`; 0 for none.
    pub size_gamma: f64,
    /// How many entries a directory has; 0 for all in one.
    pub width: Number,
    /// The shape of the gamma distribution of width and depth; 0 for none.
    pub gamma: f64,
    /// The depth of a directory, if it is given.
    pub depth: Option<Number>,
    /// Which percentage of the files exists at the start.
    pub prealloc: f64,
    /// Whether they are made by several threads.
    pub parallel: bool,
    /// Whether files of an earlier run are taken.
    pub reuse: bool,
    /// Whether they are taken without a look.
    pub trust: bool,
    /// How they may be opened.
    pub access: Access,
    /// Whether they stay in the cache; `None` leaves that to the kernel.
    pub cached: Option<bool>,
}

/// What a file may be opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Both.
    ReadWrite,
    /// Reading only.
    ReadOnly,
    /// Writing only.
    WriteOnly,
}

/// Processes with their threads.
#[derive(Debug)]
pub struct Model {
    /// The files that they work on.
    pub filesets: Arc<Vec<FilesetSpec>>,
    /// Their threads.
    pub threads: Vec<ThreadSpec>,
    /// What is measured: one for each name of a flowop.
    pub flowops: Vec<FlowopInfo>,
    /// How a run ends by itself.
    pub mode: QuitMode,
    /// Whether histograms of latency are taken.
    pub histogram: bool,
    /// Whether some flowop asks for what all threads have done.
    pub needs_totals: bool,
}

impl Model {
    /// Whether events limit some thread.
    pub fn is_limited(&self) -> bool {
        let limits = [Kind::EventLimit, Kind::IopsLimit, Kind::OpsLimit, Kind::BandwidthLimit];
        self.flowops.iter().any(|flowop| limits.contains(&flowop.kind))
    }

    /// The memory that all threads ask for.
    pub fn memory(&self) -> u64 {
        let of = |thread: &ThreadSpec| thread.memory.saturating_mul(thread.instances as u64);
        self.threads.iter().map(of).fold(0, u64::saturating_add)
    }

    /// How many threads there are, with all their instances.
    pub fn instances(&self) -> usize {
        self.threads.iter().map(|thread| thread.instances).sum()
    }
}

/// What is told of a flowop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowopInfo {
    /// Its name, with those of the composite flowops that it is in.
    pub name: String,
    /// What it does.
    pub kind: Kind,
}

/// A thread, of which there are several instances.
#[derive(Debug)]
pub struct ThreadSpec {
    /// `process.thread`.
    pub name: String,
    /// How many: those of the process times those of the thread.
    pub instances: usize,
    /// How much memory each has.
    pub memory: u64,
    /// How much nicer it is.
    pub nice: i32,
    /// Its I/O priority from 0 (highest) to 7, if it has one.
    pub io_priority: Option<u32>,
    /// What it does, over and over.
    pub flowops: Vec<Flowop>,
    /// How many flowops there are, those within composite ones included.
    pub count: usize,
}

/// A flowop of a thread.
#[derive(Debug, Clone)]
pub struct Flowop {
    /// What it does.
    pub kind: Kind,
    /// Its number within the thread.
    pub local: usize,
    /// Its number in [`Model::flowops`].
    pub info: usize,
    /// Its name and line, for messages.
    pub label: String,
    /// How often it is done in each round.
    pub iters: Number,
    /// What a composite flowop consists of.
    pub children: Vec<Flowop>,
    /// Its parameters.
    pub with: Arguments,
}

/// What a flowop works with.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute of the language")]
pub struct Arguments {
    /// The number of the fileset.
    pub fileset: Option<usize>,
    /// The file descriptor.
    pub fd: usize,
    /// The file descriptor whose file gives the size.
    pub source_fd: usize,
    /// How many bytes at once.
    pub size: Number,
    /// Which part of a file is used; 0 for all of it.
    pub working_set: Number,
    /// Which file is picked, if it is not the next one.
    pub index: Option<Number>,
    /// A number whose meaning depends on the flowop.
    pub value: Number,
    /// A text whose meaning depends on the flowop.
    pub text: Option<String>,
    /// How far a semaphore's posters may be ahead.
    pub highwater: f64,
    /// Flowops that this one is about.
    pub targets: Vec<Target>,
    /// Offsets at random.
    pub random: bool,
    /// `O_SYNC`.
    pub dsync: bool,
    /// `O_DIRECT`.
    pub direct: bool,
    /// No read-ahead.
    pub no_readahead: bool,
    /// Another descriptor, and so another file, each time.
    pub open_next: bool,
    /// Whether a poster waits for those that are behind.
    pub blocking: bool,
}

/// A flowop that another one is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The number of its thread in [`Model::threads`].
    pub thread: usize,
    /// Its number within that thread.
    pub local: usize,
}
