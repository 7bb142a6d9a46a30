//! `fslab-engine delete`.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use fslab_engine::Error;
use fslab_engine::measure::Measured;
use fslab_engine::operations::delete::{Parameters, holds_more_than, run};
use fslab_engine::walk::Order;

use super::Shown;
use crate::plain;

/// Maximum number of files that are deleted on a terminal without confirmation.
const ASK_ABOVE: u64 = 10_000;

/// Delete a tree, in parallel
///
/// Symbolic links are removed, never followed. Other file systems and subvolumes below DIR are skipped.
/// Nothing outside DIR is deleted, even if other programs change the tree meanwhile.
///
/// Refused, also with --keep-root: a path that does not end in a name (/, ., ..), a symbolic link, a mount
/// point or subvolume, lost+found, a system directory (also through a bind mount), the current directory, a
/// home directory (also each directory in /home), and every directory that contains the current directory or a
/// home directory.
///
/// If standard input is a terminal, deleting more than 10,000 files needs a confirmation or --yes.
/// If it is not a terminal, everything is deleted WITHOUT a question.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Directory to delete
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Delete the contents of DIR, and keep DIR itself
    #[arg(long)]
    keep_root: bool,

    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,

    /// Skip the final syncfs, which is part of the measured time
    #[arg(long)]
    no_syncfs: bool,

    /// Which directory is visited next: the one found last (depth) or first (breadth)
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
            order: self.order,
            syncfs: !self.no_syncfs,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("delete", parameters.measured.threads, &parameters, outcome)
    }

    /// Ask for confirmation if standard input is a terminal and there are more than `ASK_ABOVE` files. Fail unless the
    /// answer is yes.
    fn ask(&self) -> anyhow::Result<()> {
        let unasked = self.yes || !io::stdin().is_terminal();
        if unasked || !holds_more_than(ASK_ABOVE, &self.directory)? {
            return Ok(());
        }
        let shown = plain::text(&self.directory.display().to_string()).into_owned();
        eprint!("{shown} contains more than {ASK_ABOVE} files. Delete all of them? [y/N] ");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        bail!(Error::Invalid(format!("{shown} was not deleted; to delete it without a question, use --yes")))
    }
}
