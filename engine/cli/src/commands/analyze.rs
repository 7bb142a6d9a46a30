//! `fslab-engine analyze`.

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::analyze::{Parameters, run};
use fslab_engine::walk::Walked;

use super::Shown;

/// Sum up the files of a tree by directory, extension, age and owner
///
/// Allocated bytes are those of files, links and directories, as `du` counts them. A file with several
/// names is counted once. Apparent bytes are the sizes of regular files.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    walked: Walked,

    /// Report directories separately down to this depth
    #[arg(long, value_name = "N", default_value_t = 1)]
    depth: usize,

    /// Maximum number of lines of each list; 0: all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Compute ages relative to this time, in seconds since 1970; default: now
    #[arg(long, value_name = "SECONDS")]
    now: Option<i64>,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            walked: self.walked.clone(),
            depth: self.depth,
            top: self.top,
            now: self.now,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("analyze", parameters.measured.threads, &parameters, outcome)
    }
}
