//! Deletion of a tree in parallel, without leaving it. A directory is removed after its contents.
//!
//! Each name is removed relative to the descriptor of the directory in which it was found. Symbolic links are removed
//! and never followed. Other file systems below the tree are skipped. If a directory is replaced by a symbolic link
//! during the walk, only the link is removed, never what it points to.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;

use crate::document::{Bandwidth, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::guard::Target;
use crate::measure::phase::{Finish, NOTHING};
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::measure::{Detail, Measure, Measured};
use crate::sys;
use crate::walk::{
    Dents, Directory, Entry, FileVisitor, Handle, Node, Order, Tree, Tried, Trouble, Visit, entries, walk,
};

/// Maximum number of times that the rest of a directory is removed and `rmdir` is tried again. Some file systems skip
/// names if files are deleted during the listing.
const RETRIES: usize = 3;

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Directory to delete.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Delete the contents of DIR, and keep DIR itself.
    #[arg(long)]
    pub keep_root: bool,
    /// Whether to call `syncfs` at the end, within the measured time.
    #[arg(long = "no-syncfs", action = clap::ArgAction::SetFalse,
          help = "Skip the final syncfs, which is part of the measured time")]
    pub syncfs: bool,
    /// Which directory is visited next: the one found last (depth) or first (breadth).
    #[arg(long, value_enum, default_value_t)]
    pub order: Order,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Delete the tree.
///
/// # Errors
/// Fails if the directory cannot be opened or must not be emptied (see [`Target::open`]). Files and directories below
/// it that vanish or cannot be removed are counted instead.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    run_on(&Target::named(&parameters.directory)?, parameters)
}

/// Delete the tree at a target that is already resolved.
///
/// # Errors
/// Fails as [`run`] does.
pub fn run_on(target: &Target, parameters: &Parameters) -> Result<Outcome> {
    let path = target.path();
    let tree = Tree::over(target.open()?, path, false)?;
    let phase = parameters.measured.phase("delete", Bandwidth::Meaningless)?;
    let mut root = None;
    let finish = |finish: &mut Finish| {
        if !parameters.keep_root {
            root = Some(remove_root(target, &tree));
        }
        if parameters.syncfs { finish.sync(|| sync(&tree, parameters)) } else { Ok(()) }
    };
    let finish = (parameters.syncfs || !parameters.keep_root).then_some(finish);
    let make = |_| Ok(Deleter::default());
    let (operation, deleters, mut troubles) = walk(&phase, &tree, parameters.order, make, finish)?;
    if let Some(Err(errno)) = root {
        troubles.add("remove directory", path, errno);
    }
    let directories: u64 = deleters.iter().map(|deleter| deleter.directories).sum();
    let answer = json!({
        "files": operation.count,
        "directories": directories + u64::from(root == Some(Ok(()))),
        "troubles": &troubles,
    });
    let warnings = troubles.warning().into_iter().collect();
    Ok(Outcome { operations: vec![operation], answer: Some(answer), warnings })
}

/// Return whether a directory that may be deleted contains more than `limit` files. Counting stops above the limit.
///
/// # Errors
/// Fails as [`run`] does.
pub fn holds_more_than(limit: u64, directory: &Path) -> Result<bool> {
    let tree = Tree::over(Target::named(directory)?.open()?, directory, false)?;
    let measured = Measured { threads: 1, measure: Measure { latency: Detail::Off, interval_ns: None } };
    let phase = measured.phase("count", Bandwidth::Meaningless)?;
    let found = AtomicU64::new(0);
    match walk(&phase, &tree, Order::Depth, |_| Ok(Counter { found: &found, limit }), NOTHING) {
        Err(Error::Cancelled) => Ok(true),
        other => other.map(|_| false),
    }
}

/// Visitor that counts files and ends the walk above a limit.
struct Counter<'a> {
    found: &'a AtomicU64,
    limit: u64,
}

impl FileVisitor for Counter<'_> {
    fn file(&mut self, _: &Directory<'_, ()>, _: &Entry<'_>, _: &mut Recorder<'_>) -> Visit {
        let before = self.found.fetch_add(1, Ordering::Relaxed);
        if before < self.limit { Ok(()) } else { Err(Trouble::Fatal(Error::Cancelled)) }
    }
}

/// Remove the top directory. If it is not empty, remove the files in it and try again, at most [`RETRIES`] times.
fn remove_root(target: &Target, tree: &Tree) -> rustix::io::Result<()> {
    for _ in 0..RETRIES {
        match target.remove(tree.root()) {
            Err(Errno::NOTEMPTY) if remove_files(tree.root()) => {}
            other => return other,
        }
    }
    target.remove(tree.root())
}

fn sync(tree: &Tree, parameters: &Parameters) -> Result<()> {
    rustix::fs::syncfs(tree.root()).context("sync", || &parameters.directory)
}

/// The visitor of one thread.
#[derive(Default)]
struct Deleter {
    directories: u64,
}

impl FileVisitor for Deleter {
    #[inline]
    fn file(
        &mut self,
        directory: &Directory<'_, ()>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        rustix::fs::unlinkat(directory.handle, entry.name, AtFlags::empty()).tried("delete")?;
        recorder.end_sole(Syscall::Unlink, 0);
        Ok(())
    }

    fn leave(&mut self, tree: &Tree, node: &Node<()>, recorder: &mut Recorder<'_>) -> Visit {
        let Some(parent) = node.parent() else { return Ok(()) };
        recorder.begin();
        let parent = tree.handle(parent).tried("open directory")?;
        let mut result = remove_directory(&parent, node.name());
        for _ in 0..RETRIES {
            if result != Err(Errno::NOTEMPTY) || !remove_rest(&parent, node.name()) {
                break;
            }
            result = remove_directory(&parent, node.name());
        }
        result.tried("remove directory")?;
        recorder.lap(Syscall::Rmdir);
        self.directories += 1;
        Ok(())
    }
}

fn remove_directory(parent: impl AsFd, name: &CStr) -> rustix::io::Result<()> {
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Remove the files that the listing skipped. Returns whether any file was removed.
fn remove_rest(parent: &Handle, name: &CStr) -> bool {
    sys::open_here(parent, name).is_ok_and(remove_files)
}

/// Remove everything in a directory except subdirectories, ignoring errors. Returns whether anything was removed.
fn remove_files(directory: impl AsFd) -> bool {
    let Ok(directory) = sys::open_directory(directory, c".") else { return false };
    let mut dents = Dents::default();
    let mut removed = false;
    while let Ok(bytes) = dents.read(&directory) {
        if bytes.is_empty() {
            break;
        }
        for entry in entries(bytes).filter(|entry| entry.kind != FileType::Directory) {
            removed |= rustix::fs::unlinkat(&directory, entry.name, AtFlags::empty()).is_ok();
        }
    }
    removed
}
