//! One thread of a walk: takes tasks, lists directories, visits files and hands tasks to idle threads.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::dents::{Dents, Entry, possible_directories};
use super::node::{Handle, Node, Tree};
use super::pool::Pool;
use super::{Directory, Order, Trouble, Troubles, Visitor, kind_of};
use crate::error::{Error, Result};
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;

/// Depth-first, the listing of a directory is interrupted after more subdirectories than this, to bound memory use.
const SUBDIRECTORIES_AT_ONCE: usize = 1024;

/// A part of the walk that any thread can do.
pub(super) enum Task<D> {
    /// The top directory.
    Root,
    /// A subdirectory, by its parent and its name.
    Directory(Arc<Node<D>>, Box<CStr>),
    /// A directory whose listing was interrupted.
    Continue(Arc<Node<D>>, Arc<Handle>),
    /// Some files of a directory, as the records of its listing.
    Files(Arc<Node<D>>, Arc<Handle>, Vec<u8>),
}

pub(super) struct Worker<'a, 'r, V: Visitor> {
    tree: &'a Tree,
    order: Order,
    pool: &'a Pool<Task<V::Data>>,
    local: VecDeque<Task<V::Data>>,
    visitor: V,
    recorder: &'a mut Recorder<'r>,
    troubles: Troubles,
    dents: Dents,
}

impl<'a, 'r, V: Visitor> Worker<'a, 'r, V> {
    pub(super) fn new(
        tree: &'a Tree,
        order: Order,
        pool: &'a Pool<Task<V::Data>>,
        visitor: V,
        dents: Dents,
        recorder: &'a mut Recorder<'r>,
    ) -> Self {
        let (local, troubles) = (VecDeque::new(), Troubles::default());
        Self { tree, order, pool, local, visitor, recorder, troubles, dents }
    }

    pub(super) fn run(mut self) -> Result<(V, Troubles)> {
        while let Some(task) = self.next_task() {
            if let Err(error) = self.recorder.check().and_then(|()| self.perform(task)) {
                self.pool.abort();
                return Err(error);
            }
        }
        self.recorder.check()?;
        Ok((self.visitor, self.troubles))
    }

    fn next_task(&mut self) -> Option<Task<V::Data>> {
        if self.local.len() > 1 && self.pool.is_hungry() {
            self.give_half();
        }
        let next = match self.order {
            Order::Depth => self.local.pop_back(),
            Order::Breadth => self.local.pop_front(),
        };
        next.or_else(|| self.pool.take())
    }

    /// Hand the older half of the tasks to idle threads. They are nearest to the top directory and therefore the
    /// largest.
    fn give_half(&mut self) {
        let half = self.local.len().div_ceil(2);
        self.pool.give(self.local.drain(..half));
    }

    fn perform(&mut self, task: Task<V::Data>) -> Result<()> {
        match task {
            Task::Root => {
                let data = match self.visitor.root(self.tree, self.recorder) {
                    Ok(data) => data,
                    Err(Trouble::Fatal(error)) => return Err(error),
                    Err(Trouble::File(action, errno)) => {
                        return Err(Error::system(action, self.tree.path(), errno));
                    }
                };
                let node = Arc::new(Node::root(self.tree, data));
                self.list(&node, &Arc::clone(self.tree.root()))
            }
            Task::Directory(parent, name) => self.directory(&parent, name),
            Task::Continue(node, handle) => self.list(&node, &handle),
            Task::Files(node, handle, records) => {
                self.recorder.begin();
                self.files(&node, &handle, &records)?;
                self.part_done(node)
            }
        }
    }

    fn directory(&mut self, parent: &Arc<Node<V::Data>>, name: Box<CStr>) -> Result<()> {
        match self.open(parent, name) {
            Ok(Some((node, handle))) => self.list(&node, &handle),
            Ok(None) => self.part_done(Arc::clone(parent)),
            Err((Trouble::File(_, Errno::XDEV), _)) if self.tree.stays_on_one_file_system() => {
                self.troubles.other_file_systems += 1;
                self.part_done(Arc::clone(parent))
            }
            Err((trouble, name)) => {
                self.note(trouble, parent, &name)?;
                self.part_done(Arc::clone(parent))
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "the name goes back with the trouble, to be reported")]
    fn open(
        &mut self,
        parent: &Arc<Node<V::Data>>,
        name: Box<CStr>,
    ) -> Result<Option<(Arc<Node<V::Data>>, Arc<Handle>)>, (Trouble, Box<CStr>)> {
        self.recorder.begin();
        let opened = self.tree.handle(parent).and_then(|around| {
            let handle = self.tree.open_child(&around, &name)?;
            Ok((around, handle))
        });
        let (around, handle) = match opened {
            Ok(opened) => opened,
            Err(errno) => return Err((Trouble::File("open directory", errno), name)),
        };
        self.recorder.lap(Syscall::Open);
        if self.tree.stays_on_one_file_system() {
            match self.tree.leaves_out(&handle) {
                Ok(false) => self.recorder.lap(Syscall::Stat),
                Ok(true) => return Err((Trouble::File("enter", Errno::XDEV), name)),
                Err(errno) => return Err((Trouble::File("stat", errno), name)),
            }
        }
        let directory = Directory { tree: self.tree, node: parent, handle: &around };
        match self.visitor.enter(&directory, &name, &handle, self.recorder) {
            Ok(None) => Ok(None),
            Err(trouble) => Err((trouble, name)),
            Ok(Some(data)) => {
                let kept = (!self.tree.is_crowded()).then(|| Arc::clone(&handle));
                Ok(Some((Arc::new(Node::child(parent, name, kept, data)), handle)))
            }
        }
    }

    /// List a directory to its end, or until enough subdirectories are found for now.
    fn list(&mut self, node: &Arc<Node<V::Data>>, handle: &Arc<Handle>) -> Result<()> {
        let mut dents = std::mem::take(&mut self.dents);
        let result = self.list_with(&mut dents, node, handle);
        self.dents = dents;
        match result? {
            Listed::Stopped => Ok(()),
            Listed::Whole => self.part_done(Arc::clone(node)),
        }
    }

    fn list_with(
        &mut self,
        dents: &mut Dents,
        node: &Arc<Node<V::Data>>,
        handle: &Arc<Handle>,
    ) -> Result<Listed> {
        let mut found = 0;
        loop {
            self.recorder.begin();
            let bytes = match dents.read(handle) {
                Ok(bytes) => bytes,
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    self.note(Trouble::File("list", errno), node, c"")?;
                    return Ok(Listed::Whole);
                }
            };
            self.recorder.lap(Syscall::Readdir);
            if bytes.is_empty() {
                return Ok(Listed::Whole);
            }
            let before = self.local.len();
            found += self.directories(node, handle, bytes);
            self.recorder.begin();
            self.files(node, handle, bytes)?;
            if found > SUBDIRECTORIES_AT_ONCE && self.order == Order::Depth && !self.tree.is_crowded() {
                let place = before.min(self.local.len());
                self.local.insert(place, Task::Continue(Arc::clone(node), Arc::clone(handle)));
                return Ok(Listed::Stopped);
            }
        }
    }

    /// Queue the subdirectories for later. Returns their number.
    fn directories(&mut self, node: &Arc<Node<V::Data>>, handle: &Arc<Handle>, bytes: &[u8]) -> usize {
        let before = self.local.len();
        for entry in possible_directories(bytes) {
            if is_directory(handle, &entry) && !entry.is_dot() {
                self.local.push_back(Task::Directory(Arc::clone(node), Box::from(entry.name)));
            }
        }
        let found = self.local.len() - before;
        node.pending.fetch_add(found, Ordering::Relaxed);
        found
    }

    /// Visit the files among the records. Whenever a thread is idle, hand it half of the tasks or of the remaining
    /// records.
    fn files(&mut self, node: &Arc<Node<V::Data>>, handle: &Arc<Handle>, records: &[u8]) -> Result<()> {
        let directory = Directory { tree: self.tree, node, handle };
        let mut rest = records;
        while let Some((entry, length)) = Entry::parse(rest) {
            rest = &rest[length..];
            let kind = kind_of(handle, &entry);
            if kind == FileType::Directory {
                continue;
            }
            self.recorder.check()?;
            let entry = Entry { kind, ..entry };
            if let Err(trouble) = self.visitor.file(&directory, &entry, self.recorder) {
                self.note(trouble, node, entry.name)?;
            }
            if self.pool.is_hungry() {
                rest = self.feed(node, handle, rest);
            }
        }
        Ok(())
    }

    /// Hand half of the tasks to idle threads or, without tasks, the second half of these records. Returns the records
    /// that remain.
    fn feed<'b>(&mut self, node: &Arc<Node<V::Data>>, handle: &Arc<Handle>, rest: &'b [u8]) -> &'b [u8] {
        if !self.local.is_empty() {
            self.give_half();
            return rest;
        }
        let mut middle = 0;
        while middle < rest.len() / 2 {
            let Some((_, length)) = Entry::parse(&rest[middle..]) else { return rest };
            middle += length;
        }
        let (mine, theirs) = rest.split_at(middle);
        if !theirs.is_empty() {
            node.pending.fetch_add(1, Ordering::Relaxed);
            self.pool.give([Task::Files(Arc::clone(node), Arc::clone(handle), theirs.to_vec())]);
        }
        mine
    }

    /// Finish one part of a directory. If it was the last one, leave the directory, and each ancestor that is then
    /// finished too.
    fn part_done(&mut self, node: Arc<Node<V::Data>>) -> Result<()> {
        let mut next = Some(node);
        while let Some(node) = next {
            if node.pending.fetch_sub(1, Ordering::AcqRel) > 1 {
                return Ok(());
            }
            node.close();
            if let Err(trouble) = self.visitor.leave(self.tree, &node, self.recorder) {
                self.note(trouble, &node, c"")?;
            }
            next = node.parent().map(Arc::clone);
        }
        Ok(())
    }

    fn note(&mut self, trouble: Trouble, node: &Node<V::Data>, name: &CStr) -> Result<()> {
        match trouble {
            Trouble::Fatal(error) => Err(error),
            Trouble::File(action, errno) => {
                self.recorder.failed();
                self.troubles.add(action, &self.tree.path_of(node, name), errno);
                Ok(())
            }
        }
    }
}

/// Result of a listing: complete, or interrupted.
enum Listed {
    Whole,
    Stopped,
}

#[inline]
fn is_directory(handle: &Arc<Handle>, entry: &Entry<'_>) -> bool {
    kind_of(handle, entry) == FileType::Directory
}
