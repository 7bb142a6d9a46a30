//! Metadata operations on many files: each step makes one to three system calls per file.

mod steps;

use std::path::PathBuf;

use serde::Serialize;

pub use self::steps::Step;
use crate::document::{Bandwidth, Operation, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measured;
use crate::measure::phase::Finish;
use crate::measure::recorder::Recorder;
use crate::room::{self, Need};
use crate::sys;
use crate::walk::Dents;
use crate::workset::{FileOrder, Shape, WorkSet};

/// Name of the work directory that is created in the user's directory.
pub const WORK_DIRECTORY: &str = "fslab-meta";

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Existing directory to work in.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Number of files.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub files: u64,
    /// Number of directories for the files; 1: all threads share it; as many as threads: each thread has its own.
    #[arg(long = "dirs", value_name = "N", default_value_t = 1)]
    pub directories: u64,
    /// Order in which each thread visits its files; files are always created in ascending order.
    #[arg(long, value_enum, default_value_t)]
    pub order: FileOrder,
    /// Operations, comma-separated, in this order; default: all.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum,
          default_values_t = Step::ALL, hide_default_value = true)]
    pub operations: Vec<Step>,
    /// Whether to call `syncfs` after each operation that changes the file system, within the measured time.
    #[arg(long = "no-syncfs", action = clap::ArgAction::SetFalse,
          help = "Skip the syncfs after each operation that changes the file system, which is part of the \
                measured time")]
    pub syncfs: bool,
    /// Random seed of --order random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

impl Parameters {
    fn shape(&self, step: Step) -> Shape {
        let Self { files, directories, seed, measured: Measured { threads, .. }, .. } = *self;
        let order = if step == Step::Create { FileOrder::Created } else { self.order };
        Shape { files, directories, threads, order, seed }
    }
}

/// Run all steps.
///
/// # Errors
/// Fails if a system call fails on any file. If create fails, the files that it created are removed, except after a
/// signal.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for &step in &parameters.operations {
        let made = step == Step::Create;
        if made {
            check_room(parameters)?;
        }
        let set = WorkSet::new(&parameters.directory, WORK_DIRECTORY, parameters.shape(step), made)?;
        let result = run_step(parameters, &set, step);
        if made && matches!(&result, Err(error) if !matches!(error, Error::Interrupted(_))) {
            set.remove_everything(steps::FILE);
        }
        outcome.operations.push(result?);
        steps::clean_up(&set, step)?;
        if step == Step::Unlink {
            outcome.warnings.extend(set.remove()?);
        }
    }
    Ok(outcome)
}

/// Return an error if the files, and the entries that the steps create beside them, do not fit into the directory.
fn check_room(parameters: &Parameters) -> Result<()> {
    parameters.shape(Step::Create).check()?;
    let directory = sys::open_root(&parameters.directory).context("open", || &parameters.directory)?;
    let beside = parameters.operations.iter().any(|step| matches!(step, Step::Mkdir | Step::Symlink));
    let entries =
        parameters.files.saturating_mul(1 + u64::from(beside)).saturating_add(parameters.directories);
    room::check(directory, &parameters.directory, &Need { entries, ..Need::default() })
}

fn run_step(parameters: &Parameters, set: &WorkSet, step: Step) -> Result<Operation> {
    let phase = parameters.measured.phase(step.name(), Bandwidth::Meaningless)?;
    let sync = (parameters.syncfs && step.changes_the_file_system())
        .then_some(|finish: &mut Finish| finish.sync(|| set.sync()));
    let prepare = |worker| Ok((worker, set.files_of(worker)?, Dents::default()));
    let work = |_, prepared, recorder: &mut Recorder<'_>| steps::work(set, step, prepared, recorder);
    Ok(phase.run(prepare, work, sync)?.0)
}
