//! The unfinished directories of a walk and their descriptors.
//!
//! A descriptor stays open while its directory has work left, unless too many directories are open. A closed directory
//! is opened again from the nearest open ancestor, one name at a time, never through a symbolic link.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Result;

use crate::attributes::Attributes;
use crate::error::Context;
use crate::sys;

/// The tree of a walk.
#[derive(Debug)]
pub struct Tree {
    root: Arc<Handle>,
    path: PathBuf,
    /// Device number of the only file system to walk; `None` for all.
    file_system: Option<u64>,
    open: Arc<AtomicUsize>,
    budget: usize,
}

/// An open directory. All are counted, so that there are never too many.
#[derive(Debug)]
pub struct Handle {
    descriptor: OwnedFd,
    _place: Place,
}

/// A count of one open directory, which is released on drop.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An unfinished directory, with the data of the visitor.
#[derive(Debug)]
pub struct Node<D> {
    parent: Option<Arc<Self>>,
    name: Box<CStr>,
    depth: usize,
    handle: Mutex<Option<Arc<Handle>>>,
    /// Unfinished parts of this directory: its listing, batches of files, subdirectories.
    pub(super) pending: AtomicUsize,
    /// Data of the visitor.
    pub data: D,
}

impl Tree {
    /// Open the top directory. A third of the file descriptors that the process may have are for directories, but at
    /// most 16,384; the rest are for files. Without `cross_mounts`, other file systems are skipped.
    pub fn open(path: &Path, cross_mounts: bool) -> crate::Result<Self> {
        let descriptor = sys::open_root(path).context("open", || path)?;
        Self::over(descriptor, path, cross_mounts)
    }

    /// Create a tree from a top directory that is already open. `path` is used in messages.
    pub fn over(descriptor: OwnedFd, path: &Path, cross_mounts: bool) -> crate::Result<Self> {
        let device = Attributes::of_open(&descriptor).context("stat", || path)?.id.device;
        let file_system = (!cross_mounts).then_some(device);
        let open = Arc::new(AtomicUsize::new(1));
        let root = Arc::new(Handle { descriptor, _place: Place(Arc::clone(&open)) });
        Ok(Self { root, path: path.into(), file_system, open, budget: sys::descriptor_budget() })
    }

    /// Return whether directories on other file systems are skipped.
    pub(super) fn stays_on_one_file_system(&self) -> bool {
        self.file_system.is_some()
    }

    /// Return whether an opened directory is on a file system that is skipped. Mount points are not even opened; a
    /// btrfs subvolume is not a mount point, but has its own device number.
    pub(super) fn leaves_out(&self, opened: &Handle) -> Result<bool> {
        Ok(Some(Attributes::of_open(opened)?.id.device) != self.file_system)
    }

    /// Return the open top directory.
    pub fn root(&self) -> &Arc<Handle> {
        &self.root
    }

    /// Return the path of the top directory, as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Return whether so many directories are open that no more should be kept open.
    pub(super) fn is_crowded(&self) -> bool {
        self.open.load(Ordering::Relaxed) > self.budget
    }

    /// Open a directory by its name in another one, never through a symbolic link. If only one file system is walked, a
    /// mount point fails with `EXDEV`.
    pub(super) fn open_child(&self, parent: &Handle, name: &CStr) -> Result<Arc<Handle>> {
        let descriptor = if self.file_system.is_none() {
            sys::open_directory(parent, name)?
        } else {
            sys::open_here(parent, name)?
        };
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Handle { descriptor, _place: Place(Arc::clone(&self.open)) }))
    }

    /// Open a directory that belongs to this walk but not to its tree, and keep it open. Returns `None` if too many
    /// directories are open. It is counted before it is opened: if several threads only checked the limit first, all
    /// would exceed it.
    pub fn keep(&self, open: impl FnOnce() -> Result<OwnedFd>) -> Result<Option<Handle>> {
        let more = |open: usize| (open <= self.budget).then_some(open + 1);
        if self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return Ok(None);
        }
        let place = Place(Arc::clone(&self.open));
        Ok(Some(Handle { descriptor: open()?, _place: place }))
    }

    /// Return the open descriptor of a directory. If it was closed, open the directory again.
    pub fn handle<D>(&self, node: &Node<D>) -> Result<Arc<Handle>> {
        let mut closed = Vec::new();
        let mut next = Some(node);
        let mut open = Arc::clone(&self.root);
        while let Some(node) = next {
            if let Some(handle) = &*node.lock() {
                open = Arc::clone(handle);
                break;
            }
            closed.push(node);
            next = node.parent.as_deref();
        }
        for node in closed.into_iter().rev() {
            open = self.open_child(&open, &node.name)?;
        }
        Ok(open)
    }

    /// Return the path of a name in a directory, starting with the path of the top directory.
    pub fn path_of<D>(&self, node: &Node<D>, name: &CStr) -> PathBuf {
        let mut path = self.path.clone();
        path.push(OsStr::from_bytes(&node.relative_path()));
        path.push(OsStr::from_bytes(name.to_bytes()));
        path
    }
}

impl<D> Node<D> {
    pub(super) fn root(tree: &Tree, data: D) -> Self {
        let handle = Mutex::new(Some(Arc::clone(&tree.root)));
        Self { parent: None, name: Box::from(c""), depth: 0, handle, pending: AtomicUsize::new(1), data }
    }

    pub(super) fn child(parent: &Arc<Self>, name: Box<CStr>, handle: Option<Arc<Handle>>, data: D) -> Self {
        let (depth, handle) = (parent.depth + 1, Mutex::new(handle));
        Self { parent: Some(Arc::clone(parent)), name, depth, handle, pending: AtomicUsize::new(1), data }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Handle>>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Release the descriptor. It is closed when no thread uses it any more.
    pub(super) fn close(&self) {
        self.lock().take();
    }

    /// Return the parent directory; `None` for the top directory.
    pub fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    /// Return the name; empty for the top directory.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Return the depth; 0 for the top directory.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Return the path relative to the top directory, in bytes; empty for the top directory.
    pub fn relative_path(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut next = Some(self);
        while let Some(node) = next.filter(|node| node.parent.is_some()) {
            names.push(node.name.to_bytes());
            next = node.parent.as_deref();
        }
        names.reverse();
        names.join(&b'/')
    }
}

impl<D> Drop for Node<D> {
    /// Drop the ancestors in a loop: with recursion, a very deep tree would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_visitor_keeps_counts_as_the_directories_of_the_tree_do() {
        let mut tree = Tree::open(Path::new("/"), true).unwrap();
        tree.budget = 3;
        let keep = || tree.keep(|| rustix::io::fcntl_dupfd_cloexec(tree.root(), 0)).unwrap();
        let mut kept: Vec<_> = std::iter::from_fn(keep).collect();
        assert_eq!((kept.len(), tree.is_crowded()), (3, true));
        kept.pop();
        assert!(!tree.is_crowded() && tree.keep(|| Err(rustix::io::Errno::MFILE)).is_err());
        assert!(keep().is_some(), "what could not be opened takes no place");
    }
}
