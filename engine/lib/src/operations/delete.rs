//! Deleting a tree, depth first and in parallel, without ever leaving it.
//!
//! Every name is removed relative to the descriptor of the directory in which it was found, links are
//! removed and never followed, and other file systems below are left alone. A directory that is
//! swapped for a link under way is therefore a link to be removed, wherever it points.

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
use crate::measure::phase::{Finish, NOTHING, Phase};
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::measure::{Detail, Measure};
use crate::sys;
use crate::walk::{
    Dents, Directory, Entry, FileVisitor, Handle, Node, Order, Tree, Tried, Trouble, Visit, Visitor, entries,
    walk,
};

/// How often what is left of a directory is looked through again, where listing it while deleting
/// made the file system skip names.
const RETRIES: usize = 3;

/// What is to be done.
#[derive(Debug, Clone, Serialize)]
pub struct Parameters {
    /// What to delete.
    #[serde(serialize_with = "path_as_text")]
    pub directory: PathBuf,
    /// Whether the directory itself stays, empty.
    pub keep_root: bool,
    /// With how many threads.
    pub threads: usize,
    /// Which directory comes next.
    pub order: Order,
    /// Whether a `syncfs` follows, within the measured time.
    pub syncfs: bool,
    /// What is measured.
    #[serde(flatten)]
    pub measure: Measure,
}

/// Does the work.
///
/// # Errors
/// If the directory cannot be opened, or is one that is never emptied. Anything below it that
/// vanishes or refuses is counted.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    run_on(&Target::named(&parameters.directory)?, parameters)
}

/// Does the work on a directory that was found otherwise.
///
/// # Errors
/// As of [`run`].
pub fn run_on(target: &Target, parameters: &Parameters) -> Result<Outcome> {
    let path = target.path();
    let tree = Tree::over(target.open()?, path, false)?;
    let phase = Phase::new("delete", parameters.threads, &parameters.measure, Bandwidth::Meaningless)?;
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

/// Whether a directory that may be deleted holds more files than this; they are counted no further.
///
/// # Errors
/// As of [`run`].
pub fn holds_more_than(limit: u64, directory: &Path) -> Result<bool> {
    let tree = Tree::over(Target::named(directory)?.open()?, directory, false)?;
    let measure = Measure { latency: Detail::Off, interval_ns: None };
    let phase = Phase::new("count", 1, &measure, Bandwidth::Meaningless)?;
    let found = AtomicU64::new(0);
    match walk(&phase, &tree, Order::Depth, |_| Ok(Counter { found: &found, limit }), NOTHING) {
        Err(Error::Cancelled) => Ok(true),
        other => other.map(|_| false),
    }
}

/// Counts files up to a limit.
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

/// Removes the top; it stays if something in it could not be removed, or has come since.
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

/// One thread's part.
#[derive(Default)]
struct Deleter {
    directories: u64,
}

impl Visitor for Deleter {
    type Data = ();

    fn root(&mut self, _tree: &Tree, _recorder: &mut Recorder<'_>) -> Visit {
        Ok(())
    }

    fn enter(
        &mut self,
        _parent: &Directory<'_, ()>,
        _name: &CStr,
        _opened: &Handle,
        _recorder: &mut Recorder<'_>,
    ) -> Visit<Option<()>> {
        Ok(Some(()))
    }

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

/// Removes the files that a listing under way has skipped; returns whether there were any.
fn remove_rest(parent: &Handle, name: &CStr) -> bool {
    sys::open_here(parent, name).is_ok_and(remove_files)
}

/// Removes the files of a directory; returns whether there were any.
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
