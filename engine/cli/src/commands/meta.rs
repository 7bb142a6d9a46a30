//! `fslab-engine meta`.

use std::path::PathBuf;

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::meta::{Parameters, Step, run};
use fslab_engine::workset::FileOrder;

use super::Shown;

/// Create, open, stat, rename, link, list and remove many empty files
///
/// The files are in the directory fslab-meta inside DIR. Their names depend on --files and --dirs only, so
/// each operation can be a separate run, between create and unlink. Creating and removing the directories
/// of the files is not measured, nor is removing the links.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Existing directory to work in
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Number of files
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u64,

    /// Number of directories for the files; 1: all threads share it; as many as threads: each thread has
    /// its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    dirs: u64,

    /// Order in which each thread visits its files; files are always created in ascending order
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = FileOrder::Created)]
    order: FileOrder,

    /// Operations, comma-separated, in this order; default: all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    operations: Vec<Step>,

    /// Skip the syncfs after each operation that changes the file system, which is part of the measured
    /// time
    #[arg(long)]
    no_syncfs: bool,

    /// Random seed of --order random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            directory: self.directory.clone(),
            files: self.files,
            directories: self.dirs,
            order: self.order,
            operations: if self.operations.is_empty() { Step::ALL.to_vec() } else { self.operations.clone() },
            syncfs: !self.no_syncfs,
            seed: self.seed,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("meta", parameters.measured.threads, &parameters, outcome)
    }
}
