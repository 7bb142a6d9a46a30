//! One test with one file size and record length.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{Advice, Mode, OFlags, SeekFrom, fadvise, fsync, seek};

use super::{LETTER, Parameters, Point, Test};
use crate::buffer::AlignedBuffer;
use crate::error::{Context, Error, Result};
use crate::measure::Measure;
use crate::measure::clock::now_ns;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::random::{Stream, shuffle};
use crate::workset::{File, WorkSet};
use crate::{direct, memory, sys};

const PAGE: usize = 4096;
const FILLED: usize = 8;

/// The data that all tests of a point use. They are made before the first test: as with IOzone, nothing happens between
/// two tests that evicts a small file from the CPU cache.
pub(super) struct Kit {
    /// One buffer per thread.
    buffers: Vec<Mutex<AlignedBuffer>>,
    /// One buffer per thread, whose writing purges the CPU cache. Their pages are allocated once: in a guest whose page
    /// faults are slow, new ones before each test took longer than the tests.
    purges: Vec<Mutex<Vec<u8>>>,
    /// Numbers of the records in the order of the random tests. Empty if there is no random test.
    order: Vec<u64>,
}

impl Kit {
    pub(super) fn new(parameters: &Parameters, point: Point) -> Result<Self> {
        let workers = 0..parameters.measured.threads;
        let buffers = workers.clone().map(|_| Ok(Mutex::new(filled(point.record)?)));
        let purges = workers.map(|_| Ok(Mutex::new(memory::zeroed(parameters.purge_bytes)?)));
        Ok(Self {
            buffers: buffers.collect::<Result<_>>()?,
            purges: purges.collect::<Result<_>>()?,
            order: order(parameters, point)?,
        })
    }
}

/// Return a buffer with one record of IOzone's data.
fn filled(record: usize) -> Result<AlignedBuffer> {
    let mut buffer = AlignedBuffer::new(record)?;
    for page in buffer.as_mut().chunks_mut(PAGE) {
        let filled = page.len().min(FILLED);
        page[..filled].fill(b'_');
    }
    Ok(buffer)
}

fn order(parameters: &Parameters, point: Point) -> Result<Vec<u64>> {
    if !parameters.tests.iter().any(|test| test.is_random()) {
        return Ok(Vec::new());
    }
    let records = point.size / point.record as u64;
    let mut order: Vec<u64> = memory::room_for("the shuffled records", records)?;
    order.extend(0..records);
    shuffle(&mut order, &mut Stream::new(parameters.seed, 0));
    Ok(order)
}

/// The files of one round, one per thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) set: &'a WorkSet,
    pub(super) round: u32,
}

impl Files<'_> {
    /// Call `action` for the file of a thread and return its result.
    fn of<T>(self, worker: usize, action: impl Fn(&File<'_>) -> Result<T>) -> Result<T> {
        let (mut result, measure, never) = (None, Measure::default(), AtomicBool::new(false));
        let file = self.set.file_of(worker, self.round.into());
        self.set.each(&file, &mut Recorder::new(&measure, &never), |_, file| {
            result = Some(action(file)?);
            Ok(())
        })?;
        Ok(result.expect("each thread has a file in each round"))
    }

    /// Write the files back and evict them from the page cache, so that the files of one round at a time use memory.
    pub(super) fn leave_the_cache(self, threads: usize) -> Result<()> {
        (0..threads).try_for_each(|worker| {
            self.of(worker, |file| {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened =
                    rustix::fs::openat(file.directory, file.name(LETTER).as_c_str(), flags, Mode::empty())
                        .context("open", || file.path(LETTER))?;
                fsync(&opened).context("fsync", || file.path(LETTER))?;
                fadvise(&opened, 0, None, Advice::DontNeed).context("advise on", || file.path(LETTER))
            })
        })
    }
}

/// One test of one point.
pub(super) struct Bench<'a> {
    parameters: &'a Parameters,
    test: Test,
    point: Point,
    kit: &'a Kit,
    one_done: AtomicBool,
}

/// A thread's file, open at offset 0, its path and its buffer.
pub(super) struct Ready<'a> {
    file: OwnedFd,
    path: PathBuf,
    buffer: MutexGuard<'a, AlignedBuffer>,
}

/// Bytes that a thread had read or written when the first thread finished, and its time in nanoseconds. `file` is
/// `None` if the test closed the file.
pub(super) struct Counted {
    pub(super) bytes: u64,
    pub(super) ns: u64,
    pub(super) file: Option<(OwnedFd, PathBuf)>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(parameters: &'a Parameters, test: Test, point: Point, kit: &'a Kit) -> Self {
        Self { parameters, test, point, kit, one_done: AtomicBool::new(false) }
    }

    pub(super) fn prepare(&self, files: Files<'_>, worker: usize) -> Result<Ready<'a>> {
        let (file, path) = files.of(worker, |file| Ok((self.open(file)?, file.path(LETTER))))?;
        let buffer = self.kit.buffers[worker].lock().unwrap_or_else(PoisonError::into_inner);
        if !self.test.is_random() {
            fsync(&file).context("fsync", || &path)?;
        }
        let mut ready = Ready { file, path, buffer };
        if matches!(self.test, Test::Read | Test::Reread) {
            ready.move_record(true)?;
            seek(&ready.file, SeekFrom::Start(0)).context("seek in", || &ready.path)?;
        }
        let mut purge = self.kit.purges[worker].lock().unwrap_or_else(PoisonError::into_inner);
        purge.fill(0);
        std::hint::black_box(&*purge);
        Ok(ready)
    }

    fn open(&self, file: &File<'_>) -> Result<OwnedFd> {
        let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        flags |= match self.test {
            Test::Write => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Test::Read | Test::Reread => OFlags::RDONLY,
            Test::Rewrite | Test::RandomRead | Test::RandomWrite => OFlags::RDWR,
        };
        flags.set(OFlags::DIRECT, self.parameters.direct);
        flags.set(OFlags::SYNC, self.parameters.sync && !self.test.reads());
        let opened = rustix::fs::openat(file.directory, file.name(LETTER).as_c_str(), flags, sys::FILE_MODE)
            .context("open", || file.path(LETTER))?;
        if self.parameters.direct {
            let told = direct::alignment(&opened).context("stat", || file.path(LETTER))?;
            let Some(asked) = told else {
                return Err(Error::Invalid(
                    "this file system does not support direct I/O: remove --direct".into(),
                ));
            };
            let multiple = if self.test.reads() { asked.read } else { asked.offset };
            if self.point.record % multiple != 0 {
                let message = format!(
                    "with --direct, the record length must be a multiple of {multiple} bytes on this file system"
                );
                return Err(Error::Invalid(message));
            }
        }
        Ok(opened)
    }

    pub(super) fn work(&self, mut ready: Ready<'_>, recorder: &mut Recorder<'_>) -> Result<Counted> {
        let (record, start) = (self.point.record as u64, now_ns());
        let class = if self.test.reads() { Syscall::Read } else { Syscall::Write };
        let (mut bytes, mut ended) = (0, None);
        for index in 0..self.point.size / record {
            recorder.check()?;
            if ended.is_none() && self.one_done.load(Ordering::Relaxed) {
                self.flush(&ready, recorder)?;
                ended = Some((bytes, now_ns() - start));
                recorder.begin(); // the flush is no part of the next record
                // Later tests need the complete file.
                if self.test != Test::Write {
                    break;
                }
            }
            if self.test.is_random() {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                seek(&ready.file, SeekFrom::Start(self.kit.order[index] * record))
                    .context("seek in", || &ready.path)?;
            }
            ready.move_record(self.test.reads())?;
            recorder.end_sole(class, record);
            bytes += record;
        }
        self.flush(&ready, recorder)?;
        let mut file = Some((ready.file, ready.path));
        if self.parameters.close {
            file = None;
            recorder.lap(Syscall::Close);
        }
        let (bytes, ns) = ended.unwrap_or_else(|| (bytes, now_ns() - start));
        self.one_done.store(true, Ordering::Relaxed);
        Ok(Counted { bytes, ns, file })
    }

    fn flush(&self, ready: &Ready<'_>, recorder: &mut Recorder<'_>) -> Result<()> {
        if self.parameters.flush {
            fsync(&ready.file).context("fsync", || &ready.path)?;
            recorder.lap(Syscall::Fsync);
        }
        Ok(())
    }

    /// Call `fsync` on the file if the test did not. Does nothing if the test closed the file.
    pub(super) fn settle(&self, file: Option<(OwnedFd, PathBuf)>) -> Result<()> {
        match file {
            Some((file, path)) if !self.parameters.flush => fsync(&file).context("fsync", || path),
            _ => Ok(()),
        }
    }
}

impl Ready<'_> {
    /// Read or write one complete record at the current offset. Fails if the file ends before the end of the record.
    #[inline]
    fn move_record(&mut self, read: bool) -> Result<()> {
        if !read {
            return sys::write_all(&self.file, self.buffer.as_ref()).context("write", || &self.path);
        }
        let wanted = self.buffer.as_ref().len();
        let found = sys::read_head(&self.file, self.buffer.as_mut()).context("read", || &self.path)?;
        if found == wanted {
            return Ok(());
        }
        let message = "shorter than --size: it was written with other parameters".into();
        Err(Error::Content { path: self.path.clone(), message })
    }
}
