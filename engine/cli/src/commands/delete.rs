//! `fslab-engine delete`.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use fslab_engine::Error;
use fslab_engine::operations::delete::{Parameters, holds_more_than, run};
use fslab_engine::walk::Order;

use super::Shown;
use crate::options::Measured;

/// How many files are deleted unasked on a terminal.
const ASK_ABOVE: u64 = 10_000;

/// Delete a tree, in parallel
///
/// Links are removed, never followed; other file systems and subvolumes below are left alone; and nothing
/// outside DIR is ever touched, whatever anyone does to the tree meanwhile.
///
/// Refused, also with --keep-root: a path that does not end in a name (/, ., ..), a symbolic link, a mount
/// point or subvolume, the current directory, a home directory, a directory of the system, and whatever holds one of these.
///
/// On a terminal, more than 10,000 files are only deleted after a question or with --yes. Where standard
/// input is no terminal, nothing is asked and everything is deleted.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to delete
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Delete what is in DIR, and leave DIR itself
    #[arg(long)]
    keep_root: bool,

    /// Do not ask, however many files there are
    #[arg(long)]
    yes: bool,

    /// Leave out the final syncfs, which is part of the measured time otherwise
    #[arg(long)]
    no_syncfs: bool,

    /// Which directory comes next: the one found last (depth) or first (breadth)
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Depth)]
    order: Order,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        self.ask()?;
        let parameters = Parameters {
            directory: self.directory.clone(),
            keep_root: self.keep_root,
            threads: self.measured.threads,
            order: self.order,
            syncfs: !self.no_syncfs,
            measure: self.measured.measure(),
        };
        let outcome = run(&parameters)?;
        Shown::new("delete", parameters.threads, &parameters, outcome)
    }

    /// Asks whoever sits at the terminal, if there is much to lose.
    fn ask(&self) -> anyhow::Result<()> {
        let unasked = self.yes || !io::stdin().is_terminal();
        if unasked || !holds_more_than(ASK_ABOVE, &self.directory)? {
            return Ok(());
        }
        let shown = self.directory.display();
        eprint!("{shown} holds more than {ASK_ABOVE} files. Delete them all? [y/N] ");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        bail!(Error::Invalid(format!("{shown} was not deleted; to delete it unasked: --yes")))
    }
}
