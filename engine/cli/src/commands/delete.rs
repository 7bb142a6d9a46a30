//! `fslab-engine delete`.

use std::io::{self, BufRead, IsTerminal};

use anyhow::bail;
use clap::Args;
use fslab_engine::operations::delete::{Parameters, holds_more_than, run};
use fslab_engine::{Error, plain};

use super::Shown;

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
    #[command(flatten)]
    parameters: Parameters,

    /// Do not ask for confirmation
    // Listed after --keep-root.
    #[arg(long, display_order = 0)]
    yes: bool,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        self.ask()?;
        let it = &self.parameters;
        Shown::new("delete", it.measured.threads, it, run(it)?)
    }

    /// Ask for confirmation if standard input is a terminal and there are more than `ASK_ABOVE` files. Fail unless the
    /// answer is yes.
    fn ask(&self) -> anyhow::Result<()> {
        let directory = &self.parameters.directory;
        let unasked = self.yes || !io::stdin().is_terminal();
        if unasked || !holds_more_than(ASK_ABOVE, directory)? {
            return Ok(());
        }
        let shown = plain::text(&directory.display().to_string()).into_owned();
        eprint!("{shown} contains more than {ASK_ABOVE} files. Delete all of them? [y/N] ");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        bail!(Error::Invalid(format!("{shown} was not deleted; to delete it without a question, use --yes")))
    }
}
