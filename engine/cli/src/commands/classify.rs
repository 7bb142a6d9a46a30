//! `fslab-engine classify`.

use clap::Args;
use fslab_engine::operations::classify::{By, Parameters, run};

use super::Shown;
use crate::options::{Measured, Walked};

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
        let parameters = Parameters {
            directory: self.walked.directory.clone(),
            by: self.by,
            threads: self.measured.threads,
            order: self.walked.order,
            one_file_system: self.walked.one_file_system,
            measure: self.measured.measure(),
        };
        let outcome = run(&parameters)?;
        Shown::new("classify", parameters.threads, &parameters, outcome)
    }
}
