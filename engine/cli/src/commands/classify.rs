//! `fslab-engine classify`.

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::classify::{By, Parameters, run};
use fslab_engine::walk::Walked;

use super::Shown;

/// Determine the type of each file of a tree: text, image, archive, executable, …
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    walked: Walked,

    /// What determines the type
    #[arg(long, value_enum, value_name = "BY", default_value_t = By::Both)]
    by: By,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters { walked: self.walked.clone(), by: self.by, measured: self.measured };
        let outcome = run(&parameters)?;
        Shown::new("classify", parameters.measured.threads, &parameters, outcome)
    }
}
