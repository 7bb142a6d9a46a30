//! Making the files of a fileset, or taking those of an earlier run.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::shape::TreeShape;
use super::{Fileset, Name, Pool, WORK_DIRECTORY};
use crate::error::{Context, Error, Result};
use crate::measure::clock::{now_ns, seconds};
use crate::measure::share::Share;
use crate::measure::{Detail, Measure};
use crate::operations::delete;
use crate::random::{Stream, shuffle};
use crate::walk::Order;
use crate::wml::program::FilesetSpec;
use crate::{stop, sys};

/// With how many threads files are made that shall be made in parallel.
const PARALLEL: usize = 32;
/// How much is written at once.
const CHUNK: usize = 1 << 20;

/// What was made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Created {
    /// The fileset.
    pub(crate) name: String,
    /// Its files, those that do not exist yet included.
    pub(crate) entries: u64,
    /// Files that exist now.
    pub(crate) files: u64,
    /// Of them, those that were there before.
    pub(crate) reused: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Directories, without the empty ones.
    pub(crate) directories: u64,
    /// Empty directories that flowops make and remove.
    pub(crate) leaf_directories: u64,
    /// How long it took.
    pub(crate) seconds: f64,
}

pub(super) fn create(
    spec: &FilesetSpec,
    directory: &Path,
    tree: TreeShape,
    descriptors: usize,
) -> Result<(Fileset, Created)> {
    let started = now_ns();
    let place = Path::new(&spec.place).join(&spec.name);
    let path = directory.join(WORK_DIRECTORY).join(&place);
    let base = sys::open_root(directory).context("open", || directory)?;
    let kept = spec.reuse && is_directory(&base, &place)?;
    if !kept {
        remove_tree(&base, directory, &place)?;
    }
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

fn is_directory(base: &OwnedFd, place: &Path) -> Result<bool> {
    let below = beneath(place);
    match sys::open_beneath(base, below.as_os_str().as_encoded_bytes()) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(Error::system("open", below, errno)),
    }
}

/// Removes what an earlier run left, if anything; only ever within the work directory.
pub(crate) fn remove_tree(base: &OwnedFd, directory: &Path, place: &Path) -> Result<()> {
    if !is_directory(base, place)? {
        return Ok(());
    }
    let parameters = delete::Parameters {
        directory: directory.join(beneath(place)),
        keep_root: false,
        threads: 1,
        order: Order::Depth,
        syncfs: false,
        measure: Measure { latency: Detail::Off, interval_ns: None },
    };
    delete::run(&parameters).map(|_| ())
}

/// Makes each directory of the path that is not there; opens the last one.
fn make_path(base: &OwnedFd, directory: &Path, place: &Path) -> Result<OwnedFd> {
    let mut reached = base.try_clone().map_err(|error| {
        Error::system("open", directory, Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
    })?;
    let below = beneath(place);
    for part in &below {
        let name = part.as_encoded_bytes();
        match rustix::fs::mkdirat(&reached, name, sys::DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::system("create directory", directory.join(&below), errno)),
        }
        reached = sys::open_directory(&reached, name).context("open", || directory.join(&below))?;
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
            let made = sys::open_beneath(&self.root, parent).and_then(|parent| {
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

    /// Which of so many exist at the start: exactly the percentage that is asked for, always the same.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the number of files"
    )]
    fn chosen(&self, length: usize) -> Vec<bool> {
        let wanted = (length as f64 * self.spec.prealloc / 100.0).round() as usize;
        let mut chosen: Vec<bool> = (0..length).map(|number| number < wanted).collect();
        if wanted < length {
            shuffle(&mut chosen, &mut Stream::new(length as u64, 17));
        }
        chosen
    }

    fn make_files(&mut self, kept: bool) -> Result<(u64, u64, u64)> {
        let chosen = self.chosen(self.tree.files.len());
        let mut pool = vec![0; CHUNK];
        Stream::new(42, 0).fill(&mut pool);
        let threads = if self.spec.parallel { PARALLEL.min(chosen.len()) } else { 1 };
        let share = Share::new(chosen.len(), 16);
        let (reused, failure) = (AtomicU64::new(0), Mutex::new(None));
        let work = || {
            while let Some(range) = share.take() {
                for file in range {
                    let made = stop::check().and_then(|()| self.make_file(file, chosen[file], kept, &pool));
                    match made {
                        Ok(was_there) => {
                            reused.fetch_add(u64::from(was_there), Ordering::Relaxed);
                        }
                        Err(error) => {
                            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            return;
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let exist = |(number, _): &(usize, &bool)| chosen[*number];
        let files = chosen.iter().filter(|chosen| **chosen).count() as u64;
        let bytes = chosen.iter().enumerate().filter(exist).map(|(number, _)| self.size(number)).sum();
        self.files = Pool::new(chosen.len(), |number| chosen[number]);
        Ok((files, reused.into_inner(), bytes))
    }

    /// Brings one file to what it shall be; whether it was there.
    fn make_file(&self, file: usize, wanted: bool, kept: bool, pool: &[u8]) -> Result<bool> {
        if kept && self.spec.trust && wanted {
            return Ok(true);
        }
        if !wanted {
            if kept {
                let gone =
                    self.at_file(file, |at, name| rustix::fs::unlinkat(at, ended(name), AtFlags::empty()));
                match gone {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(Error::system("remove", self.path_of(file), errno)),
                }
            }
            return Ok(false);
        }
        let size = self.size(file);
        let open = |at: BorrowedFd<'_>, name: &Name| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let flags = if kept { flags } else { flags | OFlags::EXCL };
            rustix::fs::openat(at, ended(name), flags, Mode::from_raw_mode(0o666))
        };
        let opened = self.at_file(file, open).context("create", || self.path_of(file))?;
        let found = rustix::fs::fstat(&opened).context("stat", || self.path_of(file))?;
        let found = u64::try_from(found.st_size).unwrap_or(0);
        if found > size {
            rustix::fs::ftruncate(&opened, size).context("truncate", || self.path_of(file))?;
        }
        fill(&opened, found.min(size), size, pool).context("write", || self.path_of(file))?;
        if self.spec.cached == Some(false) {
            rustix::fs::fdatasync(&opened).context("sync", || self.path_of(file))?;
            let _ = rustix::fs::fadvise(&opened, 0, None, Advice::DontNeed);
        }
        Ok(kept && found == size && size > 0)
    }

    fn make_leaf_directories(&mut self) -> Result<u64> {
        let chosen = self.chosen(self.tree.leaf_directories.len());
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
                    return Err(Error::system("create directory", self.path_of_leaf_directory(leaf), errno));
                }
            }
        }
        self.leaf_directories = Pool::new(chosen.len(), |leaf| chosen[leaf]);
        Ok(chosen.iter().filter(|wanted| **wanted).count() as u64)
    }
}

/// Writes what is missing from `from` to `size`.
fn fill(file: &OwnedFd, from: u64, size: u64, pool: &[u8]) -> Result<(), Errno> {
    if from >= size {
        return Ok(());
    }
    rustix::fs::seek(file, rustix::fs::SeekFrom::Start(from))?;
    let mut left = size - from;
    while left > 0 {
        if stop::requested().is_some() {
            return Err(Errno::INTR);
        }
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(pool.len());
        sys::write_all(file.as_fd(), &pool[..length])?;
        left -= length as u64;
    }
    Ok(())
}

/// A name up to what ends it.
pub(crate) fn ended(name: &Name) -> &std::ffi::CStr {
    std::ffi::CStr::from_bytes_until_nul(name).unwrap_or(c"")
}
