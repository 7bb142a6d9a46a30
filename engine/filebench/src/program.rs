//! A compiled workload, ready to run: each number is fixed or a random variable, and all names are resolved.

mod kinds;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::QuitMode;
use super::random::{Distribution, Number};
use fslab_engine::document::Warning;
pub use kinds::{Class, FLOWOPS, Kind, Moves};

/// A compiled workload.
#[derive(Debug)]
pub struct Program {
    /// Variables and their values after the last command.
    pub variables: BTreeMap<String, String>,
    /// Steps in order of execution.
    pub steps: Vec<Step>,
    /// All random variables, indexed by [`Distribution::number`].
    pub distributions: Arc<[Arc<Distribution>]>,
    /// Texts of the `usage` commands.
    pub usage: Vec<String>,
    /// Warnings found by the compiler.
    pub warnings: Vec<Warning>,
}

impl Program {
    /// Return the memory in bytes of all threads that run at the same time: the maximum of all models, but at most half
    /// of the free memory.
    pub fn memory_of_threads(&self) -> u64 {
        let models = self.steps.iter().filter_map(|step| match step {
            Step::CreateProcesses(model) => Some(model.memory()),
            _ => None,
        });
        let free = fslab_engine::memory::free().unwrap_or(u64::MAX);
        models.max().unwrap_or(0).min(free / 2)
    }
}

/// A step of a workload.
#[derive(Debug, Clone)]
pub enum Step {
    /// Report a message.
    Say(String),
    /// Wait for this time in seconds while the threads work.
    Sleep(f64),
    /// Run a shell command.
    System(String),
    /// Create the files of these filesets.
    CreateFiles(Arc<Vec<FilesetSpec>>),
    /// Start all threads.
    CreateProcesses(Arc<Model>),
    /// Let the threads work, measure them and end them.
    Run(Timing),
    /// Reset the statistics.
    Clear,
    /// Report the statistics since the last reset, with an optional name.
    Snapshot(Option<String>),
    /// Set the event rate in events per second; 0 disables the limits.
    Rate(f64),
    /// End all threads.
    ShutdownProcesses,
    /// End all threads and remove all files.
    ShutdownFiles,
}

/// Duration and reporting periods of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Maximum duration in seconds; `None`: until the threads have ended.
    pub seconds: Option<f64>,
    /// Interval in seconds between reports of the statistics; `None`: only at the end.
    pub period: Option<f64>,
    /// Whether to reset the statistics after each period.
    pub fresh: bool,
}

/// A fileset, or a single file.
#[derive(Debug, Clone)]
pub struct FilesetSpec {
    /// Name in flowops, and name of its directory.
    pub name: String,
    /// Path of the parent directory below the working directory; empty for the working directory itself.
    pub place: String,
    /// Number of files.
    pub entries: u64,
    /// Number of empty directories (`leafdirs`).
    pub leaf_directories: u64,
    /// Size of each file in bytes; with `size_gamma`, the mean size.
    pub size: Number,
    /// Shape of the gamma distribution of the sizes if `size` is fixed; 0: all files have the same size.
    pub size_gamma: f64,
    /// Mean number of entries per directory; below 1: all entries in one directory.
    pub width: Number,
    /// Shape of the gamma distribution of width and depth; 0: all directories have the same width and depth.
    pub gamma: f64,
    /// Depth of the tree (`dirdepthrv`); `None`: computed from the number of entries and the width.
    pub depth: Option<Number>,
    /// Percentage of the files and empty directories that exist at the start, from 0 to 100.
    pub prealloc: f64,
    /// Whether several threads create the files.
    pub parallel: bool,
    /// Whether to reuse files of an earlier run.
    pub reuse: bool,
    /// Whether to reuse them without checking that they exist and have the right size.
    pub trust: bool,
    /// Access mode for opening the files.
    pub access: Access,
    /// `Some(false)`: sync each new file and drop it from the page cache (`POSIX_FADV_DONTNEED`). `Some(true)` and
    /// `None`: leave caching to the kernel.
    pub cached: Option<bool>,
}

/// Access mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing (`O_RDWR`).
    ReadWrite,
    /// Reading only (`O_RDONLY`).
    ReadOnly,
    /// Writing only (`O_WRONLY`).
    WriteOnly,
}

/// The threads of all processes and the filesets that they use.
#[derive(Debug)]
pub struct Model {
    /// Filesets of the flowops.
    pub filesets: Arc<Vec<FilesetSpec>>,
    /// Threads of all processes.
    pub threads: Vec<ThreadSpec>,
    /// Entries of the statistics: one for each name and kind of flowop.
    pub flowops: Vec<FlowopInfo>,
    /// Condition that ends a run.
    pub mode: QuitMode,
    /// Whether to record latency histograms (`enable lathist`).
    pub histogram: bool,
    /// Whether a flowop needs the totals of all threads, such as a limit without a target.
    pub needs_totals: bool,
}

impl Model {
    /// Return whether any flowop waits for events.
    pub fn is_limited(&self) -> bool {
        let limits = [Kind::EventLimit, Kind::IopsLimit, Kind::OpsLimit, Kind::BandwidthLimit];
        self.flowops.iter().any(|flowop| limits.contains(&flowop.kind))
    }

    /// Return the memory in bytes that all instances of all threads request.
    pub fn memory(&self) -> u64 {
        let of = |thread: &ThreadSpec| thread.memory.saturating_mul(thread.instances as u64);
        self.threads.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Return the number of thread instances.
    pub fn instances(&self) -> usize {
        self.threads.iter().map(|thread| thread.instances).sum()
    }
}

/// Identification of a flowop in the statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowopInfo {
    /// Name, preceded by the names of the enclosing composite flowops: `outer.inner`.
    pub name: String,
    /// Kind of the flowop.
    pub kind: Kind,
}

/// A thread definition with its number of instances.
#[derive(Debug)]
pub struct ThreadSpec {
    /// Name: `process.thread`.
    pub name: String,
    /// Number of instances: those of the process times those of the thread.
    pub instances: usize,
    /// Memory requested by each instance, in bytes (`memsize`).
    pub memory: u64,
    /// Nice value, the sum of those of process and thread; see `setpriority(2)`.
    pub nice: i32,
    /// I/O priority in the best-effort class from 0 (highest) to 7; `None`: unchanged. See `ioprio_set(2)`.
    pub io_priority: Option<u32>,
    /// Flowops that the thread repeats until the run ends.
    pub flowops: Vec<Flowop>,
    /// Number of flowops, including those within composite flowops.
    pub count: usize,
}

/// A flowop of a thread.
#[derive(Debug, Clone)]
pub struct Flowop {
    /// Kind of the flowop.
    pub kind: Kind,
    /// Index within the thread.
    pub local: usize,
    /// Index in [`Model::flowops`]; `usize::MAX` for composite flowops, which are not measured.
    pub info: usize,
    /// Name and line for messages.
    pub label: String,
    /// Number of executions in each round.
    pub iters: Number,
    /// Flowops within a composite flowop.
    pub children: Vec<Flowop>,
    /// Arguments of the flowop.
    pub with: Arguments,
}

/// The arguments of a flowop.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// Index in [`Model::filesets`].
    pub fileset: Option<usize>,
    /// Number of the file descriptor; 0 is the default descriptor of the fileset.
    pub fd: usize,
    /// File descriptor whose file determines the number of bytes that `writewholefile` writes; 0 for none.
    pub source_fd: usize,
    /// I/O size in bytes.
    pub size: Number,
    /// Size in bytes of the part used, from the start of the file; 0 for the whole file.
    pub working_set: Number,
    /// File to use: a number from 0 to 2 selects from the whole fileset, as in Filebench. `None`: the next file.
    pub index: Option<Number>,
    /// Numeric parameter of the flowop (`value`).
    pub value: Number,
    /// Text of `print`.
    pub text: Option<String>,
    /// For `semblock`: amount that blocking posters may post in advance.
    pub highwater: f64,
    /// Flowops to which `target` refers.
    pub targets: Vec<Target>,
    /// Whether offsets are random.
    pub random: bool,
    /// How to open the file, if it is not open.
    pub opening: Opening,
    /// Whether each operation uses the next descriptor and therefore another file.
    pub open_next: bool,
    /// For `sempost`: whether to wait at the high-water mark of the target.
    pub blocking: bool,
}

/// The attributes of a flowop that take effect only when it opens its file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opening {
    /// Whether to open the file with `O_SYNC`.
    pub dsync: bool,
    /// Whether to open the file with `O_DIRECT`.
    pub direct: bool,
    /// Whether to disable read-ahead (`POSIX_FADV_RANDOM`).
    pub no_readahead: bool,
}

impl Opening {
    /// Return the first attribute that is set here and not in `other`.
    pub fn missing_in(self, other: Self) -> Option<&'static str> {
        match () {
            () if self.dsync && !other.dsync => Some("dsync"),
            () if self.direct && !other.direct => Some("directio"),
            () if self.no_readahead && !other.no_readahead => Some("noreadahead"),
            () => None,
        }
    }
}

/// A flowop to which another flowop refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Index of its thread in [`Model::threads`].
    pub thread: usize,
    /// Index within that thread.
    pub local: usize,
}
