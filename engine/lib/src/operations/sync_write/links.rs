//! Files with several hard links: the first name is copied, the others are created as links at the end.
//!
//! Until then, the directories that contain them do not get their permissions and times: a read-only directory accepts
//! no new names, and a new name changes the times of its directory.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::{Mirror, Place, Sync, copy};
use crate::attributes::Attributes;
use crate::error::{Error, Kind, Result};
use crate::fast_map::{FastMap, FileId};
use crate::memory;
use crate::sys;
use crate::walk::{Node, Trouble, Troubles};

/// The names found so far of files with several hard links.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// First name of each file, or the error that prevented its copy.
    first: FastMap<FileId, Result<PathBuf, Errno>>,
    deferred: Vec<(FileId, PathBuf)>,
    /// Directories that get their attributes at the end, subdirectories before their parents.
    directories: Vec<(PathBuf, Attributes)>,
}

/// Result of the creation of the links.
#[derive(Debug, Default)]
pub(super) struct Linked {
    pub(super) links: u64,
    pub(super) troubles: Troubles,
}

impl Links {
    /// Record a name of a file with several hard links, and mark its directory and all parents of it as waiting.
    /// Returns whether it is a further name, which is created at the end.
    pub(super) fn defer(&self, file: FileId, node: &Node<Place>, name: &CStr) -> Result<bool> {
        let path = path_within(node, name);
        let mut around = Some(node);
        while let Some(node) = around.filter(|node| !node.data.waits.swap(true, Ordering::Relaxed)) {
            around = node.parent().map(AsRef::as_ref);
        }
        let mut state = self.lock();
        if let std::collections::hash_map::Entry::Vacant(place) = state.first.entry(file) {
            place.insert(Ok(path));
            return Ok(false);
        }
        memory::grow("the list of further names", &mut state.deferred, 1)?;
        state.deferred.push((file, path));
        Ok(true)
    }

    /// Record that the first name was not copied, so that no links to it are created.
    pub(super) fn forget(&self, file: FileId, trouble: &Trouble) {
        if let Trouble::File(_, errno) = trouble {
            self.lock().first.entry(file).and_modify(|first| *first = Err(*errno));
        }
    }

    /// Record a directory that gets its attributes at the end, because links are created in it or below it.
    pub(super) fn put_off(&self, node: &Node<Place>) -> Result<()> {
        let directories = &mut self.lock().directories;
        memory::grow("the list of directories that wait", directories, 1)?;
        directories.push((path_within(node, c""), node.data.attributes));
        Ok(())
    }

    /// Create the further names, then set the attributes of the directories that wait. A full file system and too many
    /// open files are errors; other failures are counted.
    pub(super) fn make_deferred(&self, mirror: &Mirror<'_>) -> Result<Linked> {
        let (state, mut linked) = (self.lock(), Linked::default());
        let destination = &mirror.parameters.destination;
        for (file, path) in &state.deferred {
            let first = state.first[file].as_ref().map_err(|errno| *errno);
            match first.and_then(|first| link(&mirror.root, first, path)) {
                Ok(()) => linked.links += 1,
                Err(errno) if matches!(Kind::from(errno), Kind::NoSpace | Kind::TooManyFiles) => {
                    return Err(Error::system("link", destination.join(path), errno));
                }
                Err(errno) => linked.troubles.add("link", &destination.join(path), errno),
            }
        }
        for (path, attributes) in &state.directories {
            if let Err((action, errno)) = finish(mirror, path, attributes) {
                linked.troubles.add(action, &destination.join(path), errno);
            }
        }
        Ok(linked)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reach(root: &OwnedFd, directory: &Path) -> rustix::io::Result<OwnedFd> {
    sys::open_within(root, directory.as_os_str().as_bytes())
}

fn link(root: &OwnedFd, first: &Path, path: &Path) -> rustix::io::Result<()> {
    let parted = |path: &Path| {
        let around = reach(root, path.parent().unwrap_or(Path::new("")))?;
        Ok((around, path.file_name().unwrap_or_default().to_owned()))
    };
    let ((from, old), (into, new)) = (parted(first)?, parted(path)?);
    rustix::fs::linkat(from, old, into, new, AtFlags::empty())
}

fn finish(mirror: &Mirror<'_>, path: &Path, attributes: &Attributes) -> Result<(), (&'static str, Errno)> {
    let directory = reach(&mirror.root, path).map_err(|errno| ("open directory", errno))?;
    copy::give_attributes(&directory, attributes, mirror, true).map_err(|errno| ("set times of", errno))?;
    if mirror.parameters.sync == Sync::Directory {
        rustix::fs::fsync(&directory).map_err(|errno| ("fsync", errno))?;
    }
    Ok(())
}

/// Return the path of a name relative to the top of the tree; the path of the directory itself if the name is empty.
pub(super) fn path_within(node: &Node<Place>, name: &CStr) -> PathBuf {
    let mut path = PathBuf::from(OsStr::from_bytes(&node.relative_path()));
    if !name.is_empty() {
        path.push(OsStr::from_bytes(name.to_bytes()));
    }
    path
}
