//! Many numbered files in numbered directories, within a separate work directory.
//!
//! The names depend only on the numbers, so that another process can find the files again. Each worker processes a
//! contiguous range of the files, and each directory contains a contiguous range. With as many directories as threads,
//! each thread has its own directory.

mod shape;

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::document::Warning;
use crate::error::{Context, Error, Result};
use crate::guard::Target;
use crate::measure::recorder::Recorder;
use crate::measure::{Detail, Measure};
use crate::numbered::Name;
use crate::random::{Stream, shuffle};
use crate::{memory, sys};
pub use shape::{FileOrder, Shape};

/// The files of one worker, in the order of processing.
#[derive(Debug)]
pub enum Files {
    /// In the order of creation.
    Created(Range<u64>),
    /// In reverse order of creation.
    Reverse(Range<u64>),
    /// In random order.
    Random(Vec<u64>),
}

/// An open work directory.
#[derive(Debug)]
pub struct WorkSet {
    shape: Shape,
    target: Target,
    path: PathBuf,
    descriptor: OwnedFd,
    /// The open directories; empty if there are too many to keep them open.
    open: Vec<OwnedFd>,
}

/// Check that a work directory of an earlier run belongs to this user. Another one could have made links of its files:
/// `chmod` follows symbolic links, and a hard link is the other file.
///
/// # Errors
/// Kind `invalid` if it belongs to another user.
pub fn own(directory: &OwnedFd, path: &Path) -> Result<()> {
    let owner = rustix::fs::fstat(directory).context("stat", || path)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{} belongs to another user: remove it first", path.display())))
}

impl WorkSet {
    /// Create the work directory `name` in `directory`, including its subdirectories, if `make` is set; otherwise open
    /// it.
    ///
    /// # Errors
    /// Kind `exists` if `make` is set and the directory exists; `not_found` if `make` is not set and it does not exist;
    /// `invalid` for an invalid shape, or for a directory of another user.
    pub fn new(directory: &Path, name: &'static str, shape: Shape, make: bool) -> Result<Self> {
        shape.check()?;
        let path = directory.join(name);
        let parent = sys::open_root(directory).context("open", || directory)?;
        let target = Target::beneath(parent, Path::new(name), path.clone())?;
        let descriptor = if make { target.make()? } else { target.open()? };
        if !make {
            own(&descriptor, &path)?;
        }
        let mut set = Self { shape, target, path, descriptor, open: Vec::new() };
        let made = if make { set.make_directories() } else { Ok(()) };
        if let Err(error) = made.and_then(|()| set.open_directories()) {
            if make {
                let _ = set.remove(); // the first error is the one that matters
            }
            return Err(error);
        }
        Ok(set)
    }

    fn make_directories(&self) -> Result<()> {
        for number in 0..self.shape.directories {
            let name = Name::new(b'd', number);
            rustix::fs::mkdirat(&self.descriptor, name.as_c_str(), sys::DIRECTORY_MODE)
                .context("create directory", || self.path_of_directory(number))?;
        }
        Ok(())
    }

    fn open_directories(&mut self) -> Result<()> {
        if self.shape.directories < sys::descriptor_limit() as u64 / 3 {
            let opened = (0..self.shape.directories).map(|number| self.open_directory(number));
            self.open = opened.collect::<Result<_>>()?;
        }
        Ok(())
    }

    /// Return the path of the directory with this number, for messages.
    pub fn path_of_directory(&self, number: u64) -> PathBuf {
        self.path.join(Name::new(b'd', number).to_string())
    }

    /// Open the directory with this number.
    pub fn open_directory(&self, number: u64) -> Result<OwnedFd> {
        let name = Name::new(b'd', number);
        sys::open_here(&self.descriptor, name.as_c_str())
            .context("open directory", || self.path_of_directory(number))
    }

    /// Return the number of files, directories and threads, and the order.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Write all modified data of the file system to its device, with syncfs(2).
    pub fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(&self.descriptor).context("sync", || &self.path)
    }

    /// Return the files of this worker in the order of processing.
    ///
    /// # Errors
    /// Kind `no_memory` if the list of shuffled files does not fit into memory.
    pub fn files_of(&self, worker: usize) -> Result<Files> {
        let share = self.shape.share(worker);
        Ok(match self.shape.order {
            FileOrder::Created => Files::Created(share),
            FileOrder::Reverse => Files::Reverse(share),
            FileOrder::Random => {
                let mut files: Vec<u64> = memory::room_for("the shuffled files", share.end - share.start)?;
                files.extend(share);
                shuffle(&mut files, &mut Stream::new(self.shape.seed, worker as u64));
                Files::Random(files)
            }
        })
    }

    /// Return one file of a worker: the one with this position in its share.
    pub fn file_of(&self, worker: usize, position: u64) -> Files {
        let file = self.shape.share(worker).start + position;
        Files::Created(file..file + 1)
    }

    /// Call `action` for each of these files. Stops at the first error.
    pub fn each(
        &self,
        files: &Files,
        recorder: &mut Recorder<'_>,
        mut action: impl FnMut(&mut Recorder<'_>, &File<'_>) -> Result<()>,
    ) -> Result<()> {
        match files {
            Files::Created(share) => self.each_of(share.clone(), recorder, &mut action),
            Files::Reverse(share) => self.each_of(share.clone().rev(), recorder, &mut action),
            Files::Random(files) => self.each_of(files.iter().copied(), recorder, &mut action),
        }
    }

    /// Call `action` for each file of the work directory on the calling thread, without measurement. Stops at the first
    /// error.
    pub fn for_all(&self, action: impl Fn(&File<'_>) -> Result<()>) -> Result<()> {
        let (cancelled, shape) = (AtomicBool::new(false), Shape { threads: 1, ..self.shape });
        let mut recorder = Recorder::new(&Measure { latency: Detail::Off, interval_ns: None }, &cancelled);
        self.each_of(shape.share(0), &mut recorder, &mut |_, file| action(file))
    }

    fn each_of(
        &self,
        files: impl Iterator<Item = u64>,
        recorder: &mut Recorder<'_>,
        action: &mut impl FnMut(&mut Recorder<'_>, &File<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut last = None;
        for index in files {
            recorder.check()?;
            let number = self.shape.directory_of(index);
            let directory = match self.open.get(usize::try_from(number).unwrap_or(usize::MAX)) {
                Some(open) => open.as_fd(),
                None => self.reopened(number, &mut last, recorder)?,
            };
            action(recorder, &File { directory, index, number, root: &self.path })?;
        }
        Ok(())
    }

    fn reopened<'l>(
        &self,
        number: u64,
        last: &'l mut Option<(u64, OwnedFd)>,
        recorder: &mut Recorder<'_>,
    ) -> Result<BorrowedFd<'l>> {
        if last.as_ref().is_none_or(|(open, _)| *open != number) {
            *last = Some((number, self.open_directory(number)?));
            recorder.begin();
        }
        Ok(last.as_ref().expect("opened just now").1.as_fd())
    }

    /// Remove all directories. Returns a warning if some are not empty; these remain.
    pub fn remove(&self) -> Result<Option<Warning>> {
        let mut left = 0;
        for number in 0..self.shape.directories {
            let name = Name::new(b'd', number);
            let removed = rustix::fs::unlinkat(&self.descriptor, name.as_c_str(), AtFlags::REMOVEDIR);
            left += u64::from(self.is_left(removed)?);
        }
        let removed = self.target.remove(&self.descriptor);
        left += u64::from(self.is_left(removed)?);
        Ok((left > 0).then(|| Warning {
            kind: "files_left",
            message: format!(
                "{left} directories in {} are not empty: they were created with other parameters",
                self.path.display()
            ),
        }))
    }

    /// Return whether a directory remains because it is not empty. A directory that does not exist counts as removed.
    fn is_left(&self, removed: rustix::io::Result<()>) -> Result<bool> {
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(false),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(true),
            Err(errno) => Err(Error::system("remove directory", &self.path, errno)),
        }
    }

    /// Remove files and directories after a failure; ignore errors.
    pub fn remove_everything(&self, letter: u8) {
        let gone = |file: &File<'_>| {
            let _ = rustix::fs::unlinkat(file.directory, file.name(letter).as_c_str(), AtFlags::empty());
            Ok(())
        };
        let _ = self.for_all(gone);
        let _ = self.remove();
    }
}

/// One file.
#[derive(Debug)]
pub struct File<'a> {
    /// Open directory that contains the file.
    pub directory: BorrowedFd<'a>,
    /// Number of the file.
    pub index: u64,
    number: u64,
    root: &'a Path,
}

impl File<'_> {
    /// Return the name of the file with this letter.
    #[inline]
    pub fn name(&self, letter: u8) -> Name {
        Name::new(letter, self.index)
    }

    /// Return the path of the file with this letter, for messages.
    pub fn path(&self, letter: u8) -> PathBuf {
        self.root.join(Name::new(b'd', self.number).to_string()).join(self.name(letter).to_string())
    }
}
