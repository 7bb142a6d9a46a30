//! Deleting a tree, depth first and in parallel, without ever leaving it.
//!
//! Every name is removed relative to the descriptor of the directory in which it was found, links are
//! removed and never followed, and other file systems below are left alone. A directory that is
//! swapped for a link under way is therefore a link to be removed, wherever it points.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;

use crate::attributes::Attributes;
use crate::document::{Bandwidth, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measure;
use crate::measure::phase::{Finish, Phase};
use crate::measure::recorder::{Recorder, Syscall};
use crate::sys;
use crate::walk::{Dents, Directory, Entry, Handle, Node, Order, Tree, Tried, Visit, Visitor, entries, walk};

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
/// If the directory cannot be opened, or is one that is never deleted. Anything below it that
/// vanishes or refuses is counted.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let path = &parameters.directory;
    let tree = Tree::open(path, false)?;
    refuse_what_is_never_meant(&tree, parameters)?;
    let phase = Phase::new("delete", parameters.threads, &parameters.measure, Bandwidth::Meaningless)?;
    let finish = |finish: &mut Finish| {
        if !parameters.keep_root {
            remove_root(path)?;
        }
        if parameters.syncfs { finish.sync(|| sync(&tree, parameters)) } else { Ok(()) }
    };
    let finish = (parameters.syncfs || !parameters.keep_root).then_some(finish);
    let make = |_| Ok(Deleter::default());
    let (operation, deleters, troubles) = walk(&phase, &tree, parameters.order, make, finish)?;
    let directories: u64 = deleters.iter().map(|deleter| deleter.directories).sum();
    let answer = json!({
        "files": operation.count,
        "directories": directories + u64::from(!parameters.keep_root),
        "troubles": &troubles,
    });
    let warnings = troubles.warning().into_iter().collect();
    Ok(Outcome { operations: vec![operation], answer: Some(answer), warnings })
}

fn refuse_what_is_never_meant(tree: &Tree, parameters: &Parameters) -> Result<()> {
    let is = |path: &str| -> Result<bool> {
        let other = Attributes::of(CWD, &std::ffi::CString::new(path).unwrap_or_default());
        let this = Attributes::of_open(tree.root()).context("stat", || tree.path())?;
        Ok(other.is_ok_and(|other| other.id == this.id))
    };
    if is("/")? || (is(".")? && !parameters.keep_root) {
        let message = format!("{} is the root or the current directory: not deleted", tree.path().display());
        return Err(Error::Invalid(message));
    }
    Ok(())
}

/// Removes the top; it stays if something in it could not be removed, which was counted.
fn remove_root(path: &Path) -> Result<()> {
    match rustix::fs::rmdir(path) {
        Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => Ok(()),
        Err(errno) => Err(Error::system("remove directory", path, errno)),
    }
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
    let Ok(directory) = sys::open_directory(parent, name) else { return false };
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
