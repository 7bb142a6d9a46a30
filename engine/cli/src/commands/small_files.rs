//! `fslab-engine small-files`.

use std::path::PathBuf;

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::small_files::{Parameters, Step, run};
use fslab_engine::units::parse_size;
use fslab_engine::workset::FileOrder;

use super::Shown;

/// Create, stat, read and delete many small files
///
/// The files are in the directory fslab-small-files inside DIR. Their names depend on --files and --dirs
/// only, so each operation can be a separate run: `--operations create` keeps the files, and a later run
/// with the same parameters reads or deletes them. Creating and removing the directories is not measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Existing directory to work in
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Number of files
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u64,

    /// Size of each file
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = parse_size)]
    size: u64,

    /// Maximum size of a file: sizes are uniform between --size and this; default: all files have --size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,

    /// Number of directories for the files; as many as threads: each thread has its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    dirs: u64,

    /// Order in which each thread visits its files; files are always created in ascending order
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = FileOrder::Created)]
    order: FileOrder,

    /// Call fsync on each file before it is closed
    #[arg(long)]
    fsync: bool,

    /// Skip the final syncfs of create and delete, which is part of the measured time
    #[arg(long)]
    no_syncfs: bool,

    /// Operations, comma-separated, in this order
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        default_value = "create,stat,read,delete"
    )]
    operations: Vec<Step>,

    /// Random seed of contents, sizes and --order random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let largest_bytes = self.max_size.unwrap_or(self.size);
        anyhow::ensure!(largest_bytes >= self.size, "--max-size is smaller than --size");
        let parameters = Parameters {
            directory: self.directory.clone(),
            files: self.files,
            size_bytes: self.size,
            largest_bytes,
            directories: self.dirs,
            order: self.order,
            fsync: self.fsync,
            syncfs: !self.no_syncfs,
            operations: self.operations.clone(),
            seed: self.seed,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("small-files", parameters.measured.threads, &parameters, outcome)
    }
}
