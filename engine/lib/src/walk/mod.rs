//! Walking a tree with several threads: directory descriptors, `getdents64`, no link ever followed.
//!
//! A visitor per thread sees each directory when it is entered, each file, and each directory again
//! when everything in it is done. One huge directory is shared between all threads.

mod dents;
mod node;
mod pool;
mod troubles;
mod worker;

use std::ffi::CStr;
use std::sync::Arc;

use rustix::fs::FileType;
use serde::Serialize;

pub use dents::{Dents, Entry, entries};
pub use node::{Handle, Node, Tree};
pub use troubles::{Tried, Trouble, Troubles, Visit};

use crate::document::Operation;
use crate::error::Result;
use crate::measure::phase::{Finish, Phase};
use crate::measure::recorder::Recorder;
use pool::Pool;
use worker::{Task, Worker};

/// Which directory comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Order {
    /// The one found last: few directories are open at a time, and files are visited near each other.
    #[default]
    Depth,
    /// The one found first.
    Breadth,
}

/// A directory in which something is visited.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'a, D> {
    /// The tree around it.
    pub tree: &'a Tree,
    /// Its place in the tree.
    pub node: &'a Node<D>,
    /// Its descriptor.
    pub handle: &'a Handle,
}

/// What one thread does with the directories and files of a walk.
pub trait Visitor: Send {
    /// What is remembered about a directory until everything in it is done.
    type Data: Send + Sync;

    /// Makes what is remembered about the directory at the top.
    fn root(&mut self, tree: &Tree, recorder: &mut Recorder<'_>) -> Visit<Self::Data>;

    /// A directory was opened; `None` leaves it out.
    fn enter(
        &mut self,
        parent: &Directory<'_, Self::Data>,
        name: &CStr,
        opened: &Handle,
        recorder: &mut Recorder<'_>,
    ) -> Visit<Option<Self::Data>>;

    /// Anything that is not a directory.
    fn file(
        &mut self,
        directory: &Directory<'_, Self::Data>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit;

    /// Everything in a directory is done.
    fn leave(&mut self, _tree: &Tree, _node: &Node<Self::Data>, _recorder: &mut Recorder<'_>) -> Visit {
        Ok(())
    }
}

/// A visitor that looks at files alone and remembers nothing about directories.
pub trait FileVisitor: Send {
    /// Anything that is not a directory.
    fn file(
        &mut self,
        directory: &Directory<'_, ()>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit;
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
}

/// Walks the tree; one visitor for each thread is made by `make`, before anything is measured, and handed
/// back at the end.
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

/// What an entry is, asked of the file where the directory does not tell.
fn kind_of(directory: &Arc<Handle>, entry: &Entry<'_>) -> FileType {
    if entry.kind != FileType::Unknown {
        return entry.kind;
    }
    let stat = rustix::fs::statat(directory, entry.name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}
