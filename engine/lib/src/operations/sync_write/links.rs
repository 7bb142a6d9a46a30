//! Files with several names: the first name is copied, the others become links to it at the end.

use std::ffi::{CStr, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, ResolveFlags};
use rustix::io::Errno;

use super::{Place, copy};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::fast_map::{FastMap, FileId};
use crate::sys;
use crate::walk::Node;

/// The names that were met of files with several.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    first: FastMap<FileId, PathBuf>,
    deferred: Vec<(FileId, PathBuf)>,
}

impl Links {
    /// Notes a name; returns whether it is a further one, which is made at the end.
    pub(super) fn defer(&self, file: FileId, node: &Node<Place>, name: &CStr) -> bool {
        let path = path_within(node, name);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let std::collections::hash_map::Entry::Vacant(place) = state.first.entry(file) {
            place.insert(path);
            return false;
        }
        state.deferred.push((file, path));
        true
    }

    /// Makes the further names.
    pub(super) fn make_deferred(&self, root: impl AsFd, destination: &Path) -> Result<()> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (file, path) in &state.deferred {
            match make(&root, &state.first[file], path) {
                // The first name gave trouble, which was counted.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(Error::system("link", destination.join(path), errno)),
            }
        }
        Ok(())
    }
}

/// Makes a link, and gives the directory around it back its times, which it had got already.
fn make(root: impl AsFd, first: &Path, path: &Path) -> rustix::io::Result<()> {
    let around = path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let around = rustix::fs::openat2(&root, around, sys::OPEN_DIRECTORY, Mode::empty(), beneath)?;
    let before = Attributes::of_open(&around)?;
    rustix::fs::linkat(&root, first, &around, path.file_name().unwrap_or_default(), AtFlags::empty())?;
    rustix::fs::futimens(&around, &copy::times(&before))
}

/// The path of a name, from the top of the tree.
pub(super) fn path_within(node: &Node<Place>, name: &CStr) -> PathBuf {
    let mut path = PathBuf::from(OsStr::from_bytes(&node.relative_path()));
    path.push(OsStr::from_bytes(name.to_bytes()));
    path
}
