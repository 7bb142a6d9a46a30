//! Create, stat, read and delete many small files.
//!
//! The names depend on the parameters only, so that each step can run in its own process. Between the steps, caches can
//! be dropped or the file system can be remounted.

use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode};
use serde::Serialize;

use crate::contents::{BLOCK, Contents};
use crate::document::{Bandwidth, Operation, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measured;
use crate::measure::phase::Finish;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::random::mix;
use crate::room::{self, Need};
use crate::units::parse_size;
use crate::workset::{File, FileOrder, Files, Shape, WorkSet};
use crate::{memory, sys};

/// Name of the work directory that is created in the user's directory.
pub const WORK_DIRECTORY: &str = "fslab-small-files";
/// First letter of the file names.
const LETTER: u8 = b'f';
/// Maximum number of bytes per write. A read requests up to one byte more.
const CHUNK: usize = 1 << 20;
/// Separates the random numbers for sizes from those for contents.
const LENGTHS: u64 = 0x6c65_6e67_7468_7321;

/// A step of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Create with `O_EXCL`, write, close; with --fsync, fsync before the close.
    Create,
    /// Read type, size and times.
    Stat,
    /// Open, read to the end, close; the size is checked.
    Read,
    /// Unlink.
    Delete,
}

impl Step {
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

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Existing directory to work in.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Number of files.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub files: u64,
    /// Size of each file.
    #[arg(long = "size", value_name = "SIZE", default_value = "4k", value_parser = parse_size)]
    pub size_bytes: u64,
    /// Maximum size of a file: sizes are uniform between --size and this; default: all files have --size.
    #[arg(long = "max-size", value_name = "SIZE", value_parser = parse_size)]
    pub largest_bytes: Option<u64>,
    /// Number of directories for the files; as many as threads: each thread has its own.
    #[arg(long = "dirs", value_name = "N", default_value_t = 1)]
    pub directories: u64,
    /// Order in which each thread visits its files; files are always created in ascending order.
    #[arg(long, value_enum, default_value_t)]
    pub order: FileOrder,
    /// Call fsync on each file before it is closed.
    #[arg(long)]
    pub fsync: bool,
    /// Whether to call `syncfs` after create and delete, within the measured time.
    #[arg(long = "no-syncfs", action = clap::ArgAction::SetFalse,
          help = "Skip the final syncfs of create and delete, which is part of the measured time")]
    pub syncfs: bool,
    /// Operations, comma-separated, in this order.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "create,stat,read,delete")]
    pub operations: Vec<Step>,
    /// Random seed of contents, sizes and --order random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

impl Parameters {
    fn shape(&self, step: Step) -> Shape {
        let Self { files, directories, seed, measured: Measured { threads, .. }, .. } = *self;
        let order = if step == Step::Create { FileOrder::Created } else { self.order };
        Shape { files, directories, threads, order, seed }
    }

    fn largest(&self) -> u64 {
        self.largest_bytes.unwrap_or(self.size_bytes)
    }

    /// Return the size in bytes of file number `index`. It is the same in every step.
    #[inline]
    fn length_of(&self, index: u64) -> u64 {
        let range = self.largest() - self.size_bytes;
        if range == 0 {
            return self.size_bytes;
        }
        self.size_bytes + mix(self.seed ^ LENGTHS ^ mix(index)) % range.saturating_add(1)
    }
}

/// Run all steps.
///
/// # Errors
/// Fails if the maximum size is smaller than the size, or if a file cannot be created, read or deleted, or has a wrong
/// size. If create fails, the files that it created are removed, except after a signal.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    if parameters.largest() < parameters.size_bytes {
        return Err(Error::Invalid("--max-size is smaller than --size".into()));
    }
    let mut outcome = Outcome::default();
    for &step in &parameters.operations {
        let made = step == Step::Create;
        if made {
            check_room(parameters)?;
        }
        let set = WorkSet::new(&parameters.directory, WORK_DIRECTORY, parameters.shape(step), made)?;
        let result = run_step(parameters, &set, step);
        if made && matches!(&result, Err(error) if !matches!(error, Error::Interrupted(_))) {
            set.remove_everything(LETTER);
        }
        outcome.operations.push(result?);
        if step == Step::Delete {
            outcome.warnings.extend(set.remove()?);
        }
    }
    Ok(outcome)
}

fn run_step(parameters: &Parameters, set: &WorkSet, step: Step) -> Result<Operation> {
    let phase = parameters.measured.phase(step.name(), step.bandwidth())?;
    let sync = (parameters.syncfs && step.changes_the_file_system())
        .then_some(|finish: &mut Finish| finish.sync(|| set.sync()));
    let contents = Contents::new(parameters.seed);
    let prepare = |worker| Ok((set.files_of(worker)?, memory::zeroed(piece_of(parameters) + 1)?));
    let work = |_, (files, mut buffer): (Files, Vec<u8>), recorder: &mut Recorder<'_>| match step {
        Step::Create => {
            set.each(&files, recorder, |r, file| create(r, file, &contents, &mut buffer, parameters))
        }
        Step::Stat => set.each(&files, recorder, |r, file| stat(r, file, parameters)),
        Step::Read => set.each(&files, recorder, |r, file| read(r, file, &mut buffer, parameters)),
        Step::Delete => set.each(&files, recorder, delete),
    };
    Ok(phase.run(prepare, work, sync)?.0)
}

/// Return an error if the files do not fit into the directory, or the buffers into memory.
fn check_room(parameters: &Parameters) -> Result<()> {
    parameters.shape(Step::Create).check()?;
    let directory = sys::open_root(&parameters.directory).context("open", || &parameters.directory)?;
    let memory = (piece_of(parameters) as u64).saturating_mul(parameters.measured.threads as u64);
    let mut need = Need { entries: parameters.directories, memory, ..Need::default() };
    need.files(parameters.files, parameters.size_bytes.midpoint(parameters.largest()));
    room::check(directory, &parameters.directory, &need)
}

/// Return the maximum number of bytes per write.
fn piece_of(parameters: &Parameters) -> usize {
    usize::try_from(parameters.largest()).map_or(CHUNK, |size| size.min(CHUNK))
}

fn wrong_length(file: &File<'_>, found: u64, expected: u64) -> Error {
    Error::Content { path: file.path(LETTER), message: format!("{found} bytes long, not {expected}") }
}

fn create(
    recorder: &mut Recorder<'_>,
    file: &File<'_>,
    contents: &Contents,
    buffer: &mut [u8],
    parameters: &Parameters,
) -> Result<()> {
    let pieces = buffer.len() - 1;
    let size = parameters.length_of(file.index);
    let length = |offset: u64| usize::try_from(size - offset).map_or(pieces, |l| l.min(pieces));
    contents.fill(file.index, 0, &mut buffer[..length(0)]);
    recorder.begin();
    let descriptor =
        rustix::fs::openat(file.directory, file.name(LETTER).as_c_str(), sys::OPEN_NEW, sys::FILE_MODE)
            .context("create", || file.path(LETTER))?;
    recorder.lap(Syscall::Open);
    let mut offset = 0;
    while offset < size {
        let piece = &mut buffer[..length(offset)];
        if offset > 0 {
            contents.fill(file.index, offset / BLOCK as u64, piece);
            recorder.skip();
        }
        sys::write_all(&descriptor, piece).context("write", || file.path(LETTER))?;
        recorder.lap(Syscall::Write);
        offset += piece.len() as u64;
    }
    if parameters.fsync {
        rustix::fs::fsync(&descriptor).context("fsync", || file.path(LETTER))?;
        recorder.lap(Syscall::Fsync);
    }
    drop(descriptor);
    recorder.lap(Syscall::Close);
    recorder.end(size);
    Ok(())
}

fn stat(recorder: &mut Recorder<'_>, file: &File<'_>, parameters: &Parameters) -> Result<()> {
    let found = rustix::fs::statat(file.directory, file.name(LETTER).as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
        .context("stat", || file.path(LETTER))?;
    recorder.end_sole(Syscall::Stat, 0);
    let length = u64::try_from(found.st_size).unwrap_or(0);
    let expected = parameters.length_of(file.index);
    if length == expected { Ok(()) } else { Err(wrong_length(file, length, expected)) }
}

fn read(
    recorder: &mut Recorder<'_>,
    file: &File<'_>,
    buffer: &mut [u8],
    parameters: &Parameters,
) -> Result<()> {
    let descriptor =
        rustix::fs::openat(file.directory, file.name(LETTER).as_c_str(), sys::OPEN_READ, Mode::empty())
            .context("open", || file.path(LETTER))?;
    recorder.lap(Syscall::Open);
    let (expected, mut length) = (parameters.length_of(file.index), 0);
    loop {
        // The buffer holds one byte more than a file that is read at once, so that a longer file is noticed.
        let count = sys::read_some(&descriptor, buffer).context("read", || file.path(LETTER))?;
        recorder.lap(Syscall::Read);
        length += count as u64;
        if count == 0 || length >= expected {
            break;
        }
    }
    drop(descriptor);
    recorder.lap(Syscall::Close);
    recorder.end(length);
    if length == expected { Ok(()) } else { Err(wrong_length(file, length, expected)) }
}

fn delete(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    rustix::fs::unlinkat(file.directory, file.name(LETTER).as_c_str(), AtFlags::empty())
        .context("delete", || file.path(LETTER))?;
    recorder.end_sole(Syscall::Unlink, 0);
    Ok(())
}
