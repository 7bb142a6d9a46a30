//! `fslab-engine duplicates`.

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::duplicates::{Hash, Parameters, run};
use fslab_engine::units::parse_size;
use fslab_engine::walk::Walked;

use super::Shown;

/// Find sets of files with the same contents
///
/// Files of the same size are compared by their first and last 4 KiB, then byte by byte; files up to 16 KiB
/// by a BLAKE3 hash of their contents. Several names (hard links) of one file are not duplicates.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    walked: Walked,

    /// Skip files that are smaller
    #[arg(long, value_name = "SIZE", default_value = "1", value_parser = parse_size)]
    minimum: u64,

    /// Hash of whole files, used where files of the same size, beginning and end differ
    #[arg(long, value_enum, value_name = "HASH", default_value_t = Hash::Xxh3)]
    hash: Hash,

    /// Maximum number of sets to list, those with the most redundant bytes first
    #[arg(long, value_name = "N", default_value_t = 0)]
    list: usize,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            walked: self.walked.clone(),
            minimum_bytes: self.minimum,
            hash: self.hash,
            list: self.list,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("duplicates", parameters.measured.threads, &parameters, outcome)
    }
}
