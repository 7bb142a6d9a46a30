//! `fslab-engine sync-read`.

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::sync_read::{Advise, Parameters, run};
use fslab_engine::units::parse_length;
use fslab_engine::walk::Walked;

use super::Shown;

/// Read every file of a tree to its end
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    walked: Walked,

    /// Size of a read
    #[arg(long, value_name = "SIZE", default_value = "256k", value_parser = parse_length)]
    buffer: usize,

    /// Bypass the page cache (`O_DIRECT`)
    #[arg(long)]
    direct: bool,

    /// Announce the access pattern with `posix_fadvise`; default: none
    #[arg(long, value_enum, value_name = "ADVICE")]
    fadvise: Option<Advise>,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            walked: self.walked.clone(),
            buffer_bytes: self.buffer,
            direct: self.direct,
            advise: self.fadvise,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("sync-read", parameters.measured.threads, &parameters, outcome)
    }
}
