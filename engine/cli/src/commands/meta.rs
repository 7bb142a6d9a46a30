//! `fslab-engine meta`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
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
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = TypedOrder::Created)]
    order: TypedOrder,

    /// What to do, in this order; all if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    operations: Vec<Operation>,

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

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TypedOrder {
    Created,
    Reverse,
    Random,
}

impl From<TypedOrder> for FileOrder {
    fn from(order: TypedOrder) -> Self {
        match order {
            TypedOrder::Created => Self::Created,
            TypedOrder::Reverse => Self::Reverse,
            TypedOrder::Random => Self::Random,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Operation {
    Create,
    OpenClose,
    Stat,
    Chmod,
    Truncate,
    Rename,
    Link,
    Symlink,
    Readdir,
    Mkdir,
    Rmdir,
    Unlink,
}

impl From<Operation> for Step {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Create => Self::Create,
            Operation::OpenClose => Self::OpenClose,
            Operation::Stat => Self::Stat,
            Operation::Chmod => Self::Chmod,
            Operation::Truncate => Self::Truncate,
            Operation::Rename => Self::Rename,
            Operation::Link => Self::Link,
            Operation::Symlink => Self::Symlink,
            Operation::Readdir => Self::Readdir,
            Operation::Mkdir => Self::Mkdir,
            Operation::Rmdir => Self::Rmdir,
            Operation::Unlink => Self::Unlink,
        }
    }
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let typed: Vec<Step> = self.operations.iter().copied().map(Step::from).collect();
        let parameters = Parameters {
            directory: self.directory.clone(),
            files: self.files,
            directories: self.dirs,
            threads: self.measured.threads,
            order: self.order.into(),
            operations: if typed.is_empty() { Step::ALL.to_vec() } else { typed },
            syncfs: !self.no_syncfs,
            seed: self.seed,
            measure: self.measured.measure(),
        };
        let outcome = run(&parameters)?;
        Shown::new("meta", parameters.threads, &parameters, outcome)
    }
}
