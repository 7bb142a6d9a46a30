//! `fslab-engine delete`.

use std::path::PathBuf;

use clap::Args;
use fslab_engine::operations::delete::{Parameters, run};

use super::Shown;
use crate::options::{Measured, WalkOrder};

/// Delete a tree, in parallel
///
/// Links are removed, never followed; other file systems mounted below are left alone; and nothing
/// outside DIR is ever touched, whatever anyone does to the tree meanwhile. The root and the current
/// directory are refused.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to delete
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Delete what is in DIR, and leave DIR itself
    #[arg(long)]
    keep_root: bool,

    /// Leave out the final syncfs, which is part of the measured time otherwise
    #[arg(long)]
    no_syncfs: bool,

    /// Which directory comes next: the one found last (depth) or first (breadth)
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = WalkOrder::Depth)]
    order: WalkOrder,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            directory: self.directory.clone(),
            keep_root: self.keep_root,
            threads: self.measured.threads,
            order: self.order.into(),
            syncfs: !self.no_syncfs,
            measure: self.measured.measure(),
        };
        let outcome = run(&parameters)?;
        Shown::new("delete", parameters.threads, &parameters, outcome)
    }
}
