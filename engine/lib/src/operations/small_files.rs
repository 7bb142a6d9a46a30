//! Create, stat, read and delete many small files.
//!
//! The names depend on the parameters alone, so that each step can be its own process: caches can
//! then be dropped, or the file system mounted afresh, in between.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use serde::Serialize;

use crate::document::{Bandwidth, Operation, Outcome, Warning, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measure;
use crate::measure::phase::Phase;
use crate::measure::recorder::{Recorder, Syscall};
use crate::random::{Stream, mix};
use crate::sys;

/// The directory that is made inside the user's.
pub const WORK_DIRECTORY: &str = "fslab-small-files";
/// Longest piece that is read or written at once.
const CHUNK: usize = 1 << 20;
/// How far apart the contents of two files may start in the pool of random bytes.
const SPREAD: usize = 64 << 10;

/// One step of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Open exclusively, write, close; fsync before the close if asked for.
    Create,
    /// Ask for type, size and times.
    Stat,
    /// Open, read to the end, close; the length is checked.
    Read,
    /// Unlink.
    Delete,
}

impl Step {
    /// All steps in the usual order.
    pub const ALL: [Self; 4] = [Self::Create, Self::Stat, Self::Read, Self::Delete];

    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Read => "read",
            Self::Delete => "delete",
        }
    }

    fn bandwidth(self) -> Bandwidth {
        match self {
            Self::Create | Self::Read => Bandwidth::Counted,
            Self::Stat | Self::Delete => Bandwidth::Meaningless,
        }
    }

    fn changes_the_file_system(self) -> bool {
        matches!(self, Self::Create | Self::Delete)
    }
}

/// What is to be done.
#[derive(Debug, Clone, Serialize)]
pub struct Parameters {
    /// Where.
    #[serde(serialize_with = "path_as_text")]
    pub directory: PathBuf,
    /// How many files.
    pub files: u64,
    /// How long each is.
    pub size_bytes: u64,
    /// In how many directories.
    pub directories: u64,
    /// With how many threads; each has its own contiguous share of the files.
    pub threads: usize,
    /// Whether each file is synced before it is closed.
    pub fsync: bool,
    /// Whether a `syncfs` follows create and delete, within the measured time.
    pub syncfs: bool,
    /// Which steps, in this order.
    pub operations: Vec<Step>,
    /// What the contents depend on.
    pub seed: u64,
    /// What is measured.
    #[serde(flatten)]
    pub measure: Measure,
}

/// Does the work.
///
/// # Errors
/// Any file that cannot be created, read or deleted ends the run. If a create fails, what it made is
/// removed again, except after a signal.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    validate(parameters)?;
    let root = sys::open_root(&parameters.directory).context("open", || &parameters.directory)?;
    let mut outcome = Outcome::default();
    for &step in &parameters.operations {
        let made = step == Step::Create;
        let work = if made { prepare(parameters, &root)? } else { Work::open(parameters, &root)? };
        let result = work.run(step);
        if made && matches!(&result, Err(error) if !matches!(error, Error::Interrupted(_))) {
            work.remove_everything(&root);
        }
        outcome.operations.push(result?);
        if step == Step::Delete {
            outcome.warnings.extend(work.remove_directories(&root)?);
        }
    }
    Ok(outcome)
}

fn validate(parameters: &Parameters) -> Result<()> {
    let Parameters { files, directories, threads, .. } = *parameters;
    if files == 0 || directories == 0 || threads == 0 {
        return Err(Error::Invalid("files, dirs and threads must be at least 1".into()));
    }
    if directories > files {
        return Err(Error::Invalid(format!("{directories} directories are more than {files} files")));
    }
    Ok(())
}

fn prepare<'a>(parameters: &'a Parameters, root: &OwnedFd) -> Result<Work<'a>> {
    let path = parameters.directory.join(WORK_DIRECTORY);
    let work = sys::make_directory(root, WORK_DIRECTORY).context("create directory", || &path)?;
    for index in 0..parameters.directories {
        let name = Name::new(b'd', index);
        rustix::fs::mkdirat(&work, name.as_c_str(), sys::DIRECTORY_MODE)
            .context("create directory", || path.join(name.to_string()))?;
    }
    Ok(Work { parameters, path, descriptor: work })
}

/// The work directory, open.
struct Work<'a> {
    parameters: &'a Parameters,
    path: PathBuf,
    descriptor: OwnedFd,
}

impl<'a> Work<'a> {
    fn open(parameters: &'a Parameters, root: &OwnedFd) -> Result<Self> {
        let path = parameters.directory.join(WORK_DIRECTORY);
        let descriptor = sys::open_directory(root, WORK_DIRECTORY).context("open", || &path)?;
        Ok(Self { parameters, path, descriptor })
    }

    fn run(&self, step: Step) -> Result<Operation> {
        let parameters = self.parameters;
        let phase = Phase {
            name: step.name(),
            threads: parameters.threads,
            measure: &parameters.measure,
            bandwidth: step.bandwidth(),
        };
        let sync = (parameters.syncfs && step.changes_the_file_system())
            .then_some(|| rustix::fs::syncfs(&self.descriptor).context("sync", || &self.path));
        let contents = Contents::new(parameters);
        let work = |index: usize, recorder: &mut Recorder<'_>| match step {
            Step::Create => self.each(index, recorder, |r, file| create(r, file, &contents, parameters)),
            Step::Stat => self.each(index, recorder, |r, file| stat(r, file, parameters)),
            Step::Read => {
                let mut buffer = vec![0; contents.chunk + 1];
                self.each(index, recorder, |r, file| read(r, file, &mut buffer, parameters))
            }
            Step::Delete => self.each(index, recorder, delete),
        };
        Ok(phase.run(work, sync)?.0)
    }

    /// Calls `action` with each file that is the share of this worker.
    fn each(
        &self,
        worker: usize,
        recorder: &mut Recorder<'_>,
        mut action: impl FnMut(&mut Recorder<'_>, &File<'_>) -> Result<()>,
    ) -> Result<()> {
        let share = share(self.parameters.files, self.parameters.threads as u64, worker as u64);
        let mut directory = None;
        for index in share {
            recorder.check()?;
            let number = self.directory_of(index);
            let (_, descriptor) = match directory.take() {
                Some((open, descriptor)) if open == number => directory.insert((open, descriptor)),
                _ => {
                    let opened = self.open_subdirectory(number)?;
                    recorder.begin();
                    directory.insert((number, opened))
                }
            };
            let name = Name::new(b'f', index);
            let file = File { directory: descriptor.as_fd(), name: &name, index, number, root: &self.path };
            action(recorder, &file)?;
        }
        Ok(())
    }

    fn directory_of(&self, index: u64) -> u64 {
        let Parameters { files, directories, .. } = *self.parameters;
        let position = u128::from(index) * u128::from(directories) / u128::from(files);
        u64::try_from(position).unwrap_or(u64::MAX)
    }

    fn open_subdirectory(&self, number: u64) -> Result<OwnedFd> {
        let name = Name::new(b'd', number);
        sys::open_directory(&self.descriptor, name.as_c_str())
            .context("open directory", || self.path.join(name.to_string()))
    }

    /// Removes the empty directories; tells when they were not empty.
    fn remove_directories(&self, root: &OwnedFd) -> Result<Option<Warning>> {
        let mut left = 0;
        for number in 0..self.parameters.directories {
            let name = Name::new(b'd', number);
            left += u64::from(remove(self.descriptor.as_fd(), name.as_c_str(), &self.path)?);
        }
        left += u64::from(remove(root.as_fd(), c"fslab-small-files", &self.path)?);
        Ok((left > 0).then(|| Warning {
            kind: "files_left",
            message: format!(
                "{left} directories in {} are not empty: they were created with other parameters",
                self.path.display()
            ),
        }))
    }

    /// Removes whatever a failed create has left, as far as that goes.
    fn remove_everything(&self, root: &OwnedFd) {
        for index in 0..self.parameters.files {
            let path = format!("{}/{}", Name::new(b'd', self.directory_of(index)), Name::new(b'f', index));
            let _ = rustix::fs::unlinkat(&self.descriptor, path, AtFlags::empty());
        }
        let _ = self.remove_directories(root);
    }
}

/// Removes an empty directory; returns whether it was left because it is not empty.
fn remove(parent: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<bool> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(false),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(true),
        Err(errno) => Err(Error::system("remove directory", path, errno)),
    }
}

/// The part of `0..total` that is the share of `worker`.
fn share(total: u64, workers: u64, worker: u64) -> Range<u64> {
    let edge = |index: u64| {
        let edge = u128::from(total) * u128::from(index) / u128::from(workers);
        u64::try_from(edge).unwrap_or(total)
    };
    edge(worker)..edge(worker + 1)
}

/// One file, named but not open.
struct File<'a> {
    directory: BorrowedFd<'a>,
    name: &'a Name,
    index: u64,
    number: u64,
    root: &'a Path,
}

impl File<'_> {
    fn path(&self) -> PathBuf {
        self.root.join(Name::new(b'd', self.number).to_string()).join(self.name.to_string())
    }

    fn wrong_length(&self, found: u64, expected: u64) -> Error {
        Error::Content { path: self.path(), message: format!("{found} bytes long, not {expected}") }
    }
}

fn create(
    recorder: &mut Recorder<'_>,
    file: &File<'_>,
    contents: &Contents,
    parameters: &Parameters,
) -> Result<()> {
    let descriptor = rustix::fs::openat(file.directory, file.name.as_c_str(), sys::OPEN_NEW, sys::FILE_MODE)
        .context("create", || file.path())?;
    recorder.lap(Syscall::Open);
    for piece in contents.of(file.index) {
        sys::write_all(&descriptor, piece).context("write", || file.path())?;
        recorder.lap(Syscall::Write);
    }
    if parameters.fsync {
        rustix::fs::fsync(&descriptor).context("fsync", || file.path())?;
        recorder.lap(Syscall::Fsync);
    }
    drop(descriptor);
    recorder.lap(Syscall::Close);
    recorder.end(parameters.size_bytes);
    Ok(())
}

fn stat(recorder: &mut Recorder<'_>, file: &File<'_>, parameters: &Parameters) -> Result<()> {
    let found = rustix::fs::statat(file.directory, file.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
        .context("stat", || file.path())?;
    recorder.end_sole(Syscall::Stat, 0);
    let length = u64::try_from(found.st_size).unwrap_or(0);
    if length == parameters.size_bytes {
        Ok(())
    } else {
        Err(file.wrong_length(length, parameters.size_bytes))
    }
}

fn read(
    recorder: &mut Recorder<'_>,
    file: &File<'_>,
    buffer: &mut [u8],
    parameters: &Parameters,
) -> Result<()> {
    let descriptor = rustix::fs::openat(file.directory, file.name.as_c_str(), sys::OPEN_READ, Mode::empty())
        .context("open", || file.path())?;
    recorder.lap(Syscall::Open);
    let mut length = 0;
    loop {
        let count = sys::read_some(&descriptor, buffer).context("read", || file.path())?;
        recorder.lap(Syscall::Read);
        length += count as u64;
        if count < buffer.len() {
            break;
        }
    }
    drop(descriptor);
    recorder.lap(Syscall::Close);
    recorder.end(length);
    if length == parameters.size_bytes {
        Ok(())
    } else {
        Err(file.wrong_length(length, parameters.size_bytes))
    }
}

fn delete(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    rustix::fs::unlinkat(file.directory, file.name.as_c_str(), AtFlags::empty())
        .context("delete", || file.path())?;
    recorder.end_sole(Syscall::Unlink, 0);
    Ok(())
}

/// Random bytes of which every file gets its own stretch.
struct Contents {
    pool: Vec<u8>,
    size: u64,
    chunk: usize,
    seed: u64,
}

impl Contents {
    fn new(parameters: &Parameters) -> Self {
        let chunk = usize::try_from(parameters.size_bytes).map_or(CHUNK, |size| size.min(CHUNK));
        let mut pool = vec![0; chunk + SPREAD];
        Stream::new(parameters.seed, 0).fill(&mut pool);
        Self { pool, size: parameters.size_bytes, chunk, seed: parameters.seed }
    }

    /// The pieces of file number `index`, none longer than a chunk.
    #[inline]
    fn of(&self, index: u64) -> impl Iterator<Item = &[u8]> {
        let pieces = if self.chunk == 0 { 0 } else { self.size.div_ceil(self.chunk as u64) };
        (0..pieces).map(move |piece| {
            let left = self.size - piece * self.chunk as u64;
            let length = usize::try_from(left).map_or(self.chunk, |left| left.min(self.chunk));
            let start = usize::try_from(mix(self.seed ^ mix(index) ^ piece) % SPREAD as u64).unwrap_or(0);
            &self.pool[start..start + length]
        })
    }
}

/// A letter and ten digits, ready for the kernel, made without an allocation.
struct Name([u8; 12]);

impl Name {
    #[inline]
    fn new(letter: u8, mut number: u64) -> Self {
        let mut bytes = *b"f0000000000\0";
        bytes[0] = letter;
        for digit in bytes[1..11].iter_mut().rev() {
            *digit += u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
        Self(bytes)
    }

    #[inline]
    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.0).expect("digits hold no NUL")
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0[..11]))
    }
}
