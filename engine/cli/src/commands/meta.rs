//! `fslab-engine meta`.

use std::path::PathBuf;

use clap::Args;
use fslab_engine::operations::meta::{Parameters, Step, run};
use fslab_engine::workset::FileOrder;

use super::Shown;
use crate::options::Measured;

/// Create, open, stat, rename, link, list and remove many empty files
///
/// The files are made in the directory fslab-meta inside DIR. Their names depend on --files and --dirs
/// alone, so that each operation can be a run of its own, between create and unlink. Making and removing
/// the directories that hold them is not measured, nor is removing the links.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to work
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// How many files
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u64,

    /// In how many directories; 1 is one shared by all threads, and with as many as threads each thread
    /// has its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    dirs: u64,

    /// In which order each thread goes through its files; they are always created in their order
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = FileOrder::Created)]
    order: FileOrder,

    /// What to do, in this order; all if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    operations: Vec<Step>,

    /// Leave out the syncfs after each operation that changes anything, which is part of the measured
    /// time otherwise
    #[arg(long)]
    no_syncfs: bool,

    /// What a random order depends on
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
            threads: self.measured.threads,
            order: self.order,
            operations: if self.operations.is_empty() { Step::ALL.to_vec() } else { self.operations.clone() },
            syncfs: !self.no_syncfs,
            seed: self.seed,
            measure: self.measured.measure(),
        };
        let outcome = run(&parameters)?;
        Shown::new("meta", parameters.threads, &parameters, outcome)
    }
}
