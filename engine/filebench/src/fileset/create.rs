//! Creation of the tree of a fileset, or reuse of the tree of an earlier run.

mod files;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::shape::{TreeShape, shape};
use super::{Fileset, Name, Pool, WORK_DIRECTORY};
use crate::program::FilesetSpec;
use crate::random::Distribution;
use fslab_engine::error::{Context, Error, Result};
use fslab_engine::guard::Target;
use fslab_engine::measure::clock::{now_ns, seconds};
use fslab_engine::measure::{Detail, Measure, Measured};
use fslab_engine::operations::delete;
use fslab_engine::random::{Stream, shuffle};
use fslab_engine::room::Need;
use fslab_engine::walk::Order;
use fslab_engine::workset::own;
use fslab_engine::{memory, stop, sys};

/// Approximate memory that the tree and the lists of a fileset need for each file, in bytes.
const MEMORY_OF_ENTRY: u64 = 64;

/// The result of creating a fileset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Created {
    /// Name of the fileset.
    pub(crate) name: String,
    /// Number of its files, including those that do not exist yet.
    pub(crate) entries: u64,
    /// Number of files that exist now.
    pub(crate) files: u64,
    /// Number of these files that an earlier run left with the right size; empty files are not counted. With
    /// `trusttree`, all of them.
    pub(crate) reused: u64,
    /// Total size of the files that exist now, in bytes.
    pub(crate) bytes: u64,
    /// Number of directories, including the root and without the leaf directories.
    pub(crate) directories: u64,
    /// Number of leaf directories (for `makedir` and `removedir`) that exist now.
    pub(crate) leaf_directories: u64,
    /// Duration of the creation in seconds.
    pub(crate) seconds: f64,
}

/// A fileset whose tree is computed but not created. Files of an earlier run are removed, or kept for reuse.
pub(crate) struct Planned<'a> {
    spec: &'a FilesetSpec,
    tree: TreeShape,
    kept: bool,
}

/// Compute the tree of a fileset. Remove what an earlier run left, unless it is to be reused.
pub(crate) fn plan<'a>(
    spec: &'a FilesetSpec,
    directory: &Path,
    distributions: &[Arc<Distribution>],
) -> Result<Planned<'a>> {
    let entries = spec.entries.saturating_add(spec.leaf_directories);
    memory::need(&format!("the tree of {}", spec.name), entries.saturating_mul(MEMORY_OF_ENTRY))?;
    let tree = shape(spec, distributions);
    let place = Path::new(&spec.place).join(&spec.name);
    let base = sys::open_root(directory).context("open", || directory)?;
    let kept = spec.reuse && is_directory(&base, &place)?;
    if !kept {
        remove_tree(&base, directory, &place)?;
    }
    Ok(Planned { spec, tree, kept })
}

impl Planned<'_> {
    /// Add the files, directories and bytes that the creation needs. Add nothing if files of an earlier run are reused,
    /// because they may exist already.
    pub(crate) fn need(&self, need: &mut Need) {
        if self.kept {
            return;
        }
        need.entries += (self.tree.directories.len() + self.tree.leaf_directories.len()) as u64;
        let chosen = chosen(self.spec, self.tree.files.len());
        for (leaf, _) in self.tree.files.iter().zip(chosen).filter(|(_, chosen)| *chosen) {
            need.files(1, leaf.size);
        }
    }
}

pub(super) fn create(
    planned: Planned<'_>,
    directory: &Path,
    descriptors: usize,
) -> Result<(Fileset, Created)> {
    let started = now_ns();
    let Planned { spec, tree, kept } = planned;
    let place = Path::new(&spec.place).join(&spec.name);
    let path = directory.join(WORK_DIRECTORY).join(&place);
    let base = sys::open_root(directory).context("open", || directory)?;
    let root = make_path(&base, directory, &place)?;
    let mut set = Fileset::assemble(spec.clone(), path, root, tree);
    set.make_directories(kept)?;
    set.open_directories(descriptors)?;
    let (files, reused, bytes) = set.make_files(kept)?;
    let leaf_directories = set.make_leaf_directories()?;
    let created = Created {
        name: spec.name.clone(),
        entries: spec.entries,
        files,
        reused,
        bytes,
        directories: set.directories() as u64,
        leaf_directories,
        seconds: seconds(now_ns() - started),
    };
    Ok((set, created))
}

fn beneath(place: &Path) -> std::path::PathBuf {
    Path::new(WORK_DIRECTORY).join(place)
}

/// Convert an error of openat2(2). EXDEV means that the path crosses a mount point, which is refused: files are created
/// and removed only on the file system of the user's directory.
fn unreachable(path: &Path, errno: Errno) -> Error {
    if errno == Errno::XDEV {
        let path = path.display();
        return Error::Invalid(format!(
            "{path} is or contains a mount point: unmount it, or choose another directory for the files"
        ));
    }
    Error::system("open", path, errno)
}

/// Return whether the directory `place` exists. The work directory must be this user's.
fn is_directory(base: &OwnedFd, place: &Path) -> Result<bool> {
    let work = Path::new(WORK_DIRECTORY);
    match sys::open_here(base, work) {
        Ok(opened) => own(&opened, work)?,
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(unreachable(work, errno)),
    }
    let below = beneath(place);
    match sys::open_within(base, below.as_os_str().as_encoded_bytes()) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(unreachable(&below, errno)),
    }
}

/// Remove the directory `place` with its contents, if it exists. The path is always inside the work directory.
pub(crate) fn remove_tree(base: &OwnedFd, directory: &Path, place: &Path) -> Result<()> {
    if !is_directory(base, place)? {
        return Ok(());
    }
    let parameters = delete::Parameters {
        directory: directory.join(beneath(place)),
        keep_root: false,
        order: Order::Depth,
        syncfs: false,
        measured: Measured { threads: 1, measure: Measure { latency: Detail::Off, interval_ns: None } },
    };
    let target = Target::beneath(base, &beneath(place), parameters.directory.clone())?;
    delete::run_on(&target, &parameters).map(|_| ())
}

/// Create the missing directories of the path `place` in the work directory. Return a descriptor of the last one.
fn make_path(base: &OwnedFd, directory: &Path, place: &Path) -> Result<OwnedFd> {
    let below = beneath(place);
    let work = Path::new(WORK_DIRECTORY);
    let mut reached = Target::beneath(base, work, directory.join(work))?.make_or_open()?;
    own(&reached, &directory.join(work))?;
    for part in place {
        let name = part.as_encoded_bytes();
        match rustix::fs::mkdirat(&reached, name, sys::DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::system("create directory", directory.join(&below), errno)),
        }
        reached =
            sys::open_here(&reached, name).map_err(|errno| unreachable(&directory.join(&below), errno))?;
        own(&reached, &directory.join(&below))?;
    }
    Ok(reached)
}

impl Fileset {
    fn make_directories(&self, kept: bool) -> Result<()> {
        for number in 1..self.directories() {
            stop::check()?;
            let path = &*self.paths[number];
            let place = self.tree.directories[number];
            let parent = self.paths[place.parent as usize].as_bytes();
            let made = sys::open_within(&self.root, parent).and_then(|parent| {
                let name = super::name_of(place.serial);
                rustix::fs::mkdirat(&parent, ended(&name), sys::DIRECTORY_MODE)
            });
            match made {
                Ok(()) => {}
                Err(Errno::EXIST) if kept => {}
                Err(errno) => return Err(Error::system("create directory", self.path.join(path), errno)),
            }
        }
        Ok(())
    }

    fn make_leaf_directories(&mut self) -> Result<u64> {
        let chosen = chosen(&self.spec, self.tree.leaf_directories.len());
        for (leaf, &wanted) in chosen.iter().enumerate() {
            stop::check()?;
            let done = self.at_leaf_directory(leaf, |at, name| {
                if wanted {
                    rustix::fs::mkdirat(at, ended(name), sys::DIRECTORY_MODE)
                } else {
                    rustix::fs::unlinkat(at, ended(name), AtFlags::REMOVEDIR)
                }
            });
            match done {
                Ok(()) | Err(Errno::EXIST | Errno::NOENT) => {}
                Err(errno) => {
                    let action = if wanted { "create directory" } else { "remove directory" };
                    return Err(Error::system(action, self.path_of_leaf_directory(leaf), errno));
                }
            }
        }
        self.leaf_directories = Pool::new(chosen.len(), |leaf| chosen[leaf]);
        Ok(chosen.iter().filter(|wanted| **wanted).count() as u64)
    }
}

/// Return which of `length` files or leaf directories exist at the start: exactly `prealloc` percent (rounded). The
/// selection does not depend on the seed, so that it is the same in each run.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of files")]
fn chosen(spec: &FilesetSpec, length: usize) -> Vec<bool> {
    let wanted = (length as f64 * spec.prealloc / 100.0).round() as usize;
    let mut chosen: Vec<bool> = (0..length).map(|number| number < wanted).collect();
    if wanted < length {
        shuffle(&mut chosen, &mut Stream::new(length as u64, 17));
    }
    chosen
}

/// Return a name as a C string, up to its NUL.
pub(crate) fn ended(name: &Name) -> &std::ffi::CStr {
    std::ffi::CStr::from_bytes_until_nul(name).unwrap_or(c"")
}
