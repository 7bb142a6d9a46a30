//! Reading every file of a tree to its end, as the source of a synchronisation does.

use std::ffi::CStr;
use std::path::PathBuf;

use rustix::fd::OwnedFd;
use rustix::fs::{Advice, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;

use crate::attributes::Attributes;
use crate::buffer::AlignedBuffer;
use crate::direct;
use crate::document::{Bandwidth, Outcome, Warning, path_as_text};
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::measure::phase::{NOTHING, Phase};
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::sys;
use crate::walk::{Directory, Entry, FileVisitor, Handle, Order, Tree, Tried, Trouble, Visit, walk};

/// What the kernel is told about the reading to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
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

/// What is to be done.
#[derive(Debug, Clone, Serialize)]
pub struct Parameters {
    /// What to read.
    #[serde(serialize_with = "path_as_text")]
    pub directory: PathBuf,
    /// With how many threads.
    pub threads: usize,
    /// Which directory comes next.
    pub order: Order,
    /// Whether directories on other file systems are left out.
    pub one_file_system: bool,
    /// How much is read at once.
    pub buffer_bytes: usize,
    /// Whether the page cache is passed by (`O_DIRECT`).
    pub direct: bool,
    /// What the kernel is told, if anything.
    pub advise: Option<Advise>,
    /// What is measured.
    #[serde(flatten)]
    pub measure: Measure,
}

/// Does the work.
///
/// # Errors
/// If the directory at the top cannot be opened. Anything below it that vanishes or refuses is counted.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    if parameters.buffer_bytes == 0 {
        return Err(Error::Invalid("the buffer must not be empty".into()));
    }
    let tree = Tree::open(&parameters.directory, !parameters.one_file_system)?;
    memory::need(
        "the buffers of all threads",
        (parameters.buffer_bytes as u64).saturating_mul(parameters.threads as u64),
    )?;
    let phase = Phase::new("sync-read", parameters.threads, &parameters.measure, Bandwidth::Counted)?;
    let make = |_| Reader::new(parameters);
    let (operation, readers, troubles) = walk(&phase, &tree, parameters.order, make, NOTHING)?;
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

/// One thread's part.
struct Reader<'a> {
    parameters: &'a Parameters,
    buffer: AlignedBuffer,
    buffered: u64,
}

impl<'a> Reader<'a> {
    fn new(parameters: &'a Parameters) -> Result<Self> {
        Ok(Self { parameters, buffer: AlignedBuffer::new(parameters.buffer_bytes)?, buffered: 0 })
    }

    /// Opens a file, past the page cache if that is asked for and can be.
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

    /// Whether a file can be read past the page cache.
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
