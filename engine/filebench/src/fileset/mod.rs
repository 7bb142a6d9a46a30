//! A fileset on disk: its directories, its files, and which of them exist.
//!
//! All filesets are inside [`WORK_DIRECTORY`], a subdirectory of the directory that the user named. System calls name a
//! file relative to a descriptor of its parent directory. Symbolic links below the user's directory are never followed.

mod bits;
mod create;
mod pool;
mod shape;

use std::fmt::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;

use super::program::FilesetSpec;
pub(crate) use create::{Created, Planned, ended, plan, remove_tree};
use fslab_engine::error::{Context, Result};
use fslab_engine::sys;
pub(crate) use pool::{Closed, Fate, Pool, Taken, Wanted};
use shape::{Place, TreeShape};

/// Name of the directory that contains all filesets, inside the directory that the user named.
pub const WORK_DIRECTORY: &str = "fslab-wml";

/// A fileset on disk.
#[derive(Debug)]
pub(crate) struct Fileset {
    pub(crate) spec: FilesetSpec,
    pub(crate) path: PathBuf,
    pub(crate) files: Pool,
    pub(crate) leaf_directories: Pool,
    tree: TreeShape,
    root: OwnedFd,
    /// Descriptors of all directories; empty if there are too many to keep them open.
    open: Vec<OwnedFd>,
    /// Path of each directory relative to the root.
    paths: Vec<Box<str>>,
    next_directory: AtomicUsize,
}

/// A file name with its terminating NUL, as system calls expect it.
pub(crate) type Name = [u8; 11];

/// Return the name of a file or directory of a fileset: the number with at least eight digits.
fn digits(serial: u32) -> String {
    format!("{serial:08}")
}

impl Fileset {
    fn assemble(spec: FilesetSpec, path: PathBuf, root: OwnedFd, tree: TreeShape) -> Self {
        let paths = paths_of(&tree);
        let nothing = || Pool::new(0, |_| false);
        let (files, leaf_directories) = (nothing(), nothing());
        let next_directory = AtomicUsize::new(0);
        Self { spec, path, files, leaf_directories, tree, root, open: Vec::new(), paths, next_directory }
    }

    /// Create the fileset, or reuse existing files if its attributes say so. Keep its directories open if there are at
    /// most `descriptors`.
    pub(crate) fn create(
        planned: Planned<'_>,
        directory: &Path,
        descriptors: usize,
    ) -> Result<(Self, Created)> {
        create::create(planned, directory, descriptors)
    }

    pub(crate) fn size(&self, file: usize) -> u64 {
        self.tree.files.get(file).map_or(0, |leaf| leaf.size)
    }

    pub(crate) fn directories(&self) -> usize {
        self.tree.directories.len()
    }

    /// Return the number of the next directory in turn. Leaf directories are not included.
    pub(crate) fn pick_directory(&self) -> usize {
        self.next_directory.fetch_add(1, Ordering::Relaxed) % self.directories()
    }

    /// Open all directories and keep them open if there are at most `most`.
    fn open_directories(&mut self, most: usize) -> Result<()> {
        if self.directories() <= most {
            let opened = (0..self.directories()).map(|number| {
                sys::open_within(&self.root, self.paths[number].as_bytes())
                    .context("open directory", || self.path.join(&*self.paths[number]))
            });
            self.open = opened.collect::<Result<_>>()?;
        }
        Ok(())
    }

    /// Call `action` with the descriptor of a directory. Open the directory first if it is not kept open.
    pub(crate) fn in_directory<T>(
        &self,
        number: usize,
        action: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match self.open.get(number) {
            Some(open) => action(open.as_fd()),
            None => action(sys::open_within(&self.root, self.paths[number].as_bytes())?.as_fd()),
        }
    }

    /// Call `action` with the parent directory and the name of a file.
    pub(crate) fn at_file<T>(
        &self,
        file: usize,
        action: impl FnOnce(BorrowedFd<'_>, &Name) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.at(self.tree.files[file].place, action)
    }

    /// Call `action` with the parent directory and the name of a leaf directory.
    pub(crate) fn at_leaf_directory<T>(
        &self,
        leaf: usize,
        action: impl FnOnce(BorrowedFd<'_>, &Name) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.at(self.tree.leaf_directories[leaf].place, action)
    }

    fn at<T>(
        &self,
        place: Place,
        action: impl FnOnce(BorrowedFd<'_>, &Name) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let name = name_of(place.serial);
        self.in_directory(place.parent as usize, |directory| action(directory, &name))
    }

    /// Return the path of a file, for messages.
    pub(crate) fn path_of(&self, file: usize) -> PathBuf {
        let place = self.tree.files[file].place;
        self.path.join(&*self.paths[place.parent as usize]).join(digits(place.serial))
    }

    /// Return the path of a leaf directory, for messages.
    pub(crate) fn path_of_leaf_directory(&self, leaf: usize) -> PathBuf {
        let place = self.tree.leaf_directories[leaf].place;
        self.path.join(&*self.paths[place.parent as usize]).join(digits(place.serial))
    }
}

/// Return the same name as [`digits`] with a terminating NUL, without a memory allocation.
fn name_of(serial: u32) -> Name {
    let (mut name, mut left) = ([0; 11], serial);
    let length = if serial < 100_000_000 { 8 } else { 9 + usize::from(serial >= 1_000_000_000) };
    for digit in name[..length].iter_mut().rev() {
        *digit = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
    }
    name
}

fn paths_of(tree: &TreeShape) -> Vec<Box<str>> {
    let mut paths: Vec<Box<str>> = Vec::with_capacity(tree.directories.len());
    for (number, place) in tree.directories.iter().enumerate() {
        let mut path = String::new();
        if number > 0 {
            let parent = &paths[place.parent as usize];
            let slash = if parent.is_empty() { "" } else { "/" };
            let _ = write!(path, "{parent}{slash}{:08}", place.serial);
        }
        paths.push(path.into());
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_digits_of_their_paths() {
        for serial in [0, 7, 99_999_999, 100_000_000, 999_999_999, 1_000_000_000, u32::MAX] {
            assert_eq!(ended(&name_of(serial)).to_str().unwrap(), digits(serial));
        }
    }
}
