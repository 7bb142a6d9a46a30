//! Parallel walk of a tree with directory descriptors and `getdents64`. Below the top directory, no symbolic link is
//! followed.
//!
//! Each thread has a visitor. A visitor is called when a directory is entered, for each file, and when everything in a
//! directory is done. The files of a huge directory are shared by all threads.

mod dents;
mod node;
mod pool;
mod troubles;
mod worker;

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::FileType;
use serde::Serialize;

pub use dents::{Dents, Entry, entries};
pub use node::{Handle, Node, Tree};
pub use troubles::{Tried, Trouble, Troubles, Visit};

use crate::document::{Operation, path_as_text};
use crate::error::Result;
use crate::measure::phase::{Finish, Phase};
use crate::measure::recorder::Recorder;
use pool::Pool;
use worker::{Task, Worker};

/// Order in which directories are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The directory found last: few directories are open at a time, and neighbouring files are visited together.
    #[default]
    Depth,
    /// The directory found first.
    Breadth,
}

/// A tree to walk.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Walked {
    /// Top directory of the tree.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Which directory is visited next: the one found last (depth) or first (breadth).
    #[arg(long, value_enum, default_value_t)]
    pub order: Order,
    /// Skip directories on other file systems.
    #[arg(long, short = 'x')]
    pub one_file_system: bool,
}

impl Walked {
    /// Open the top directory.
    pub fn open(&self) -> Result<Tree> {
        Tree::open(&self.directory, !self.one_file_system)
    }
}

/// The directory of the visited entry.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'a, D> {
    /// Tree of the walk.
    pub tree: &'a Tree,
    /// Node of the directory in the tree.
    pub node: &'a Node<D>,
    /// Open descriptor of the directory.
    pub handle: &'a Handle,
}

/// The work of one thread on the directories and files of a walk.
pub trait Visitor: Send {
    /// Data kept for a directory until everything in it is done.
    type Data: Send + Sync;

    /// Return the data of the top directory. Any error ends the walk.
    fn root(&mut self, tree: &Tree, recorder: &mut Recorder<'_>) -> Visit<Self::Data>;

    /// Process a directory that was opened. Return its data, or `None` to skip it.
    fn enter(
        &mut self,
        parent: &Directory<'_, Self::Data>,
        name: &CStr,
        opened: &Handle,
        recorder: &mut Recorder<'_>,
    ) -> Visit<Option<Self::Data>>;

    /// Process an entry that is not a directory.
    fn file(
        &mut self,
        directory: &Directory<'_, Self::Data>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit;

    /// Process the end of a directory: everything in it is done.
    fn leave(&mut self, _tree: &Tree, _node: &Node<Self::Data>, _recorder: &mut Recorder<'_>) -> Visit {
        Ok(())
    }
}

/// A visitor that enters all directories and keeps no data for them.
pub trait FileVisitor: Send {
    /// Process an entry that is not a directory.
    fn file(
        &mut self,
        directory: &Directory<'_, ()>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit;

    /// Process the end of a directory: everything in it is done.
    fn leave(&mut self, _tree: &Tree, _node: &Node<()>, _recorder: &mut Recorder<'_>) -> Visit {
        Ok(())
    }
}

impl<V: FileVisitor> Visitor for V {
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
        FileVisitor::file(self, directory, entry, recorder)
    }

    fn leave(&mut self, tree: &Tree, node: &Node<()>, recorder: &mut Recorder<'_>) -> Visit {
        FileVisitor::leave(self, tree, node, recorder)
    }
}

/// Walk the tree, then call `finish` if it is given. `make` creates one visitor per thread before the measurement
/// starts. Returns the measurements, the visitors and the errors of single files.
pub fn walk<V, M, F>(
    phase: &Phase<'_>,
    tree: &Tree,
    order: Order,
    make: M,
    finish: Option<F>,
) -> Result<(Operation, Vec<V>, Troubles)>
where
    V: Visitor,
    M: Fn(usize) -> Result<V> + Sync,
    F: FnOnce(&mut Finish) -> Result<()>,
{
    let pool = Pool::new(phase.threads, Task::Root);
    let prepare = |index| Ok((make(index)?, Dents::default()));
    let work = |_, (visitor, dents), recorder: &mut Recorder<'_>| {
        Worker::new(tree, order, &pool, visitor, dents, recorder).run()
    };
    let (operation, finished) = phase.run(prepare, work, finish)?;
    let mut troubles = Troubles::default();
    let mut visitors = Vec::with_capacity(finished.len());
    for (visitor, its_troubles) in finished {
        visitors.push(visitor);
        troubles.merge(its_troubles);
    }
    Ok((operation, visitors, troubles))
}

/// Return the file type of an entry. If the directory does not contain it, call `statat`; `Unknown` if that fails.
fn kind_of(directory: &Arc<Handle>, entry: &Entry<'_>) -> FileType {
    if entry.kind != FileType::Unknown {
        return entry.kind;
    }
    let stat = rustix::fs::statat(directory, entry.name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}
