//! Reading of every file of a tree to its end, as the source of a synchronisation does.

use std::ffi::CStr;

use rustix::fd::OwnedFd;
use rustix::fs::{Advice, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;

use crate::attributes::Attributes;
use crate::buffer::AlignedBuffer;
use crate::direct;
use crate::document::{Bandwidth, Outcome, Warning};
use crate::error::{Error, Result};
use crate::measure::Measured;
use crate::measure::phase::NOTHING;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::sys;
use crate::units::parse_length;
use crate::walk::{Directory, Entry, FileVisitor, Handle, Tried, Trouble, Visit, Walked, walk};

/// Advice to the kernel about the reads that follow (`posix_fadvise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Advise {
    /// Sequential access: a larger read-ahead.
    Sequential,
    /// Access soon: the kernel starts reading at once.
    Willneed,
    /// No further access: each file is dropped from the page cache after it was read.
    Dontneed,
    /// Each byte is accessed only once.
    Noreuse,
}

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Tree to walk.
    #[serde(flatten)]
    #[command(flatten)]
    pub walked: Walked,
    /// Size of a read.
    #[arg(long = "buffer", value_name = "SIZE", default_value = "256k", value_parser = parse_length)]
    pub buffer_bytes: usize,
    /// Bypass the page cache (`O_DIRECT`).
    #[arg(long)]
    pub direct: bool,
    /// Announce the access pattern with `posix_fadvise`; default: none.
    #[arg(long = "fadvise", value_enum, value_name = "ADVICE")]
    pub advise: Option<Advise>,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Read all regular files.
///
/// # Errors
/// Fails if the buffer is empty or not aligned for direct I/O, or if the top directory cannot be opened. Files and
/// directories below it that vanish or cannot be accessed are counted instead.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    if parameters.buffer_bytes == 0 {
        return Err(Error::Invalid("the buffer must not be empty".into()));
    }
    let tree = parameters.walked.open()?;
    memory::need(
        "the buffers of all threads",
        (parameters.buffer_bytes as u64).saturating_mul(parameters.measured.threads as u64),
    )?;
    let phase = parameters.measured.phase("sync-read", Bandwidth::Counted)?;
    let make = |_| Reader::new(parameters);
    let (operation, readers, troubles) = walk(&phase, &tree, parameters.walked.order, make, NOTHING)?;
    let buffered: u64 = readers.iter().map(|reader| reader.buffered).sum();
    let answer = json!({ "files": operation.count, "bytes": operation.bytes, "troubles": &troubles });
    let warnings = troubles.warning().into_iter().chain(not_direct(buffered)).collect();
    Ok(Outcome { operations: vec![operation], answer: Some(answer), warnings })
}

fn not_direct(files: u64) -> Option<Warning> {
    (files > 0).then(|| Warning {
        kind: "not_direct",
        message: format!(
            "{files} files were read through the page cache: their file system does not support O_DIRECT"
        ),
    })
}

/// The visitor of one thread.
struct Reader<'a> {
    parameters: &'a Parameters,
    buffer: AlignedBuffer,
    buffered: u64,
}

impl<'a> Reader<'a> {
    fn new(parameters: &'a Parameters) -> Result<Self> {
        Ok(Self { parameters, buffer: AlignedBuffer::new(parameters.buffer_bytes)?, buffered: 0 })
    }

    /// Open a file, with `O_DIRECT` if it is requested and supported. If it is requested but not supported, count the
    /// file as buffered.
    fn open(&mut self, directory: &Handle, name: &CStr) -> Visit<OwnedFd> {
        let flags = sys::OPEN_READ | OFlags::NONBLOCK;
        if self.parameters.direct {
            match rustix::fs::openat(directory, name, flags | OFlags::DIRECT, Mode::empty()) {
                Ok(file) if self.suits(&file)? => return Ok(file),
                Ok(_) | Err(Errno::INVAL) => self.buffered += 1,
                Err(errno) => return Err(Trouble::File("open", errno)),
            }
        }
        rustix::fs::openat(directory, name, flags, Mode::empty()).tried("open")
    }

    /// Return whether a file supports direct I/O. The buffer size must be a multiple of its alignment; otherwise the
    /// error is fatal.
    fn suits(&self, file: &OwnedFd) -> Visit<bool> {
        let Some(direct) = direct::alignment(file).tried("stat")? else { return Ok(false) };
        if self.parameters.buffer_bytes % direct.read == 0 {
            return Ok(true);
        }
        let message = format!(
            "with --direct, the buffer must be a multiple of {} bytes on this file system",
            direct.read
        );
        Err(Trouble::Fatal(Error::Invalid(message)))
    }
}

impl FileVisitor for Reader<'_> {
    fn file(
        &mut self,
        directory: &Directory<'_, ()>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        if entry.kind != FileType::RegularFile {
            return Ok(());
        }
        let file = self.open(directory.handle, entry.name)?;
        recorder.lap(Syscall::Open);
        if let Some(advice) = self.parameters.advise.and_then(before) {
            rustix::fs::fadvise(&file, 0, None, advice).tried("advise on")?;
            recorder.skip();
        }
        let mut progress = sys::Progress::new(Attributes::of_open(&file).tried("stat")?.size);
        recorder.lap(Syscall::Stat);
        loop {
            let (count, over) = progress.read(&file, self.buffer.as_mut()).tried("read all of")?;
            recorder.lap(Syscall::Read);
            recorder.moved(count);
            if over {
                break;
            }
            recorder.check()?;
        }
        if self.parameters.advise == Some(Advise::Dontneed) {
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).tried("advise on")?;
            recorder.skip();
        }
        drop(file);
        recorder.lap(Syscall::Close);
        recorder.end(0);
        Ok(())
    }
}

fn before(advise: Advise) -> Option<Advice> {
    match advise {
        Advise::Sequential => Some(Advice::Sequential),
        Advise::Willneed => Some(Advice::WillNeed),
        Advise::Noreuse => Some(Advice::NoReuse),
        Advise::Dontneed => None,
    }
}
