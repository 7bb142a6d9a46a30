//! IOzone's tests of one file per thread: write, rewrite, read, reread, random read, random write.
//!
//! What is timed is what IOzone 3.489 times, as seen of its system calls: the file is open and synced before;
//! each read test has read its first record before; random tests seek to each record once, in one shuffled order
//! that reads, writes and all threads share; fsync and close are in the time if asked for, of reads too. Of several
//! threads the first that is done ends the count of the others. The data are IOzone's kind: zeros but for eight
//! bytes of each page.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, SeekFrom, fsync, seek};
use serde::Serialize;
use serde_json::{Value, json};

use crate::buffer::AlignedBuffer;
use crate::direct;
use crate::document::{Bandwidth, Operation, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measure;
use crate::measure::clock::{now_ns, seconds};
use crate::measure::phase::{NOTHING, Phase};
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::random::{Stream, shuffle};
use crate::room::{self, Need};
use crate::sys;
use crate::workset::{File, FileOrder, Shape, WorkSet};

/// The directory that is made inside the user's.
pub const WORK_DIRECTORY: &str = "fslab-iozone";
const LETTER: u8 = b'f';
const PAGE: usize = 4096;
const FILLED: usize = 8;

/// One test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is IOzone's test of its name")]
pub enum Test {
    Write,
    Rewrite,
    Read,
    Reread,
    RandomRead,
    RandomWrite,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
            Self::Reread => "reread",
            Self::RandomRead => "random-read",
            Self::RandomWrite => "random-write",
        }
    }

    fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Reread | Self::RandomRead)
    }

    fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

/// What is to be done.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of IOzone")]
pub struct Parameters {
    /// Where.
    #[serde(serialize_with = "path_as_text")]
    pub directory: PathBuf,
    /// Which tests, in this order.
    pub tests: Vec<Test>,
    /// How long each thread's file is, one after the other.
    pub sizes_bytes: Vec<u64>,
    /// How much is read or written at once: of each size all that are no longer than it.
    pub records_bytes: Vec<u64>,
    /// With how many threads; each has a file of its own.
    pub threads: usize,
    /// Whether fsync is in the time.
    pub flush: bool,
    /// Whether close is in the time.
    pub close: bool,
    /// Whether the page cache is passed by (`O_DIRECT`).
    pub direct: bool,
    /// Whether each write reaches the device (`O_SYNC`).
    pub sync: bool,
    /// The processor's cache, which is overwritten before each test; 0 leaves it alone.
    pub purge_bytes: usize,
    /// Whether the files stay.
    pub keep: bool,
    /// What the random order depends on.
    pub seed: u64,
    /// What is measured.
    #[serde(flatten)]
    pub measure: Measure,
}

/// A file size and a record length.
#[derive(Debug, Clone, Copy)]
struct Point {
    size: u64,
    record: usize,
}

impl Parameters {
    /// The points, in IOzone's order.
    fn points(&self) -> Result<Vec<Point>> {
        let mut points = Vec::new();
        for &size in &self.sizes_bytes {
            for &record in self.records_bytes.iter().filter(|&&record| record <= size) {
                if record == 0 || size % record != 0 {
                    let message = format!("a file of {size} bytes is no whole number of records of {record}");
                    return Err(Error::Invalid(message));
                }
                let record = usize::try_from(record).map_err(|_| too_long(record))?;
                points.push(Point { size, record });
            }
        }
        if points.is_empty() || self.tests.is_empty() {
            return Err(Error::Invalid("no test, or no file that holds a record".into()));
        }
        Ok(points)
    }

    fn shape(&self) -> Shape {
        let (files, threads) = (self.threads as u64, self.threads);
        Shape { files, directories: 1, threads, order: FileOrder::Created, seed: self.seed }
    }

    /// Fails if the longest files do not fit where they are to be made.
    fn check_room(&self, points: &[Point]) -> Result<()> {
        self.shape().check()?;
        let directory = sys::open_root(&self.directory).context("open", || &self.directory)?;
        let largest = points.iter().map(|point| point.size).max().unwrap_or(0);
        let longest = points.iter().map(|point| point.record).max().unwrap_or(0);
        let of_each = longest.saturating_add(self.purge_bytes) as u64;
        let memory = of_each.saturating_mul(self.threads as u64);
        memory::need("the buffers of all threads", memory)?;
        let mut need = Need { entries: 2, memory, ..Need::default() };
        need.files(self.threads as u64, largest);
        // Nearly all of it is zeros, which compress to nothing.
        need.least = 0;
        room::check(directory, &self.directory, &need)
    }
}

fn too_long(record: u64) -> Error {
    Error::Invalid(format!("a record of {record} bytes is too long"))
}

/// Does the work: all tests of a point, then the next point with new files.
///
/// # Errors
/// Any file that cannot be made, read or written ends the run. What it made is removed again, except after a
/// signal. Of the kind `exists` where an earlier run left its files, `not_found` where `write` is left out and none
/// did.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let points = parameters.points()?;
    let makes = parameters.tests.contains(&Test::Write);
    if points.len() > 1 && (!makes || parameters.keep) {
        return Err(Error::Invalid("several sizes or records need the test write, and keep no file".into()));
    }
    if makes {
        parameters.check_room(&points)?;
    }
    let (mut outcome, mut answers) = (Outcome::default(), Vec::new());
    for point in points {
        let set = WorkSet::new(&parameters.directory, WORK_DIRECTORY, parameters.shape(), makes)?;
        let result = run_point(parameters, &set, point, &mut outcome.operations);
        let interrupted = matches!(&result, Err(Error::Interrupted(_)));
        if !interrupted && if result.is_err() { makes } else { !parameters.keep } {
            set.remove_everything(LETTER);
        }
        answers.extend(result?);
    }
    outcome.answer = Some(json!({ "tests": answers }));
    Ok(outcome)
}

fn run_point(
    parameters: &Parameters,
    set: &WorkSet,
    point: Point,
    operations: &mut Vec<Operation>,
) -> Result<Vec<Value>> {
    let mut answers = Vec::new();
    for &test in &parameters.tests {
        let phase = Phase::new(test.name(), parameters.threads, &parameters.measure, Bandwidth::Counted)?;
        let one_done = AtomicBool::new(false);
        let bench = Bench { parameters, test, point, one_done: &one_done };
        let prepare = |worker| bench.prepare(set, worker);
        let work = |_, ready: Ready, recorder: &mut Recorder<'_>| bench.work(ready, recorder);
        let (operation, counted) = phase.run(prepare, work, NOTHING)?;
        answers.push(json!({
            "name": test.name(),
            "size_bytes": point.size,
            "record_bytes": point.record,
            "bandwidth_bytes_per_second": sum(&counted),
            "least_bytes": counted.iter().map(|counted| counted.bytes).min(),
        }));
        operations.push(operation);
        for Counted { file, .. } in counted {
            bench.settle(file)?;
        }
    }
    Ok(answers)
}

/// What all threads did per second, each in its own time; `None` if one of them took none.
fn sum(counted: &[Counted]) -> Option<f64> {
    let rate = |counted: &Counted| (counted.ns > 0).then(|| counted.bytes as f64 / seconds(counted.ns));
    counted.iter().map(rate).sum()
}

/// One test of one point.
#[derive(Clone, Copy)]
struct Bench<'a> {
    parameters: &'a Parameters,
    test: Test,
    point: Point,
    one_done: &'a AtomicBool,
}

/// A thread's file, open at its start, and what it needs to work on it.
struct Ready {
    file: OwnedFd,
    path: PathBuf,
    buffer: AlignedBuffer,
    /// The records of a random test, in their order.
    order: Option<Vec<u64>>,
}

/// What a thread had done when the first one was done, and how long it took. The file, unless it is closed.
struct Counted {
    bytes: u64,
    ns: u64,
    file: Option<(OwnedFd, PathBuf)>,
}

impl Bench<'_> {
    fn prepare(&self, set: &WorkSet, worker: usize) -> Result<Ready> {
        let (mut opened, files) = (None, set.files_of(worker)?);
        let measure = Measure::default();
        let never = AtomicBool::new(false);
        set.each(&files, &mut Recorder::new(&measure, &never), |_, file| {
            opened = Some((self.open(file)?, file.path(LETTER)));
            Ok(())
        })?;
        let (file, path) = opened.expect("each thread has a file");
        let mut buffer = AlignedBuffer::new(self.point.record)?;
        for page in buffer.as_mut().chunks_mut(PAGE) {
            let filled = page.len().min(FILLED);
            page[..filled].fill(b'_');
        }
        if !self.test.is_random() {
            fsync(&file).context("fsync", || &path)?;
        }
        let mut ready = Ready { file, path, buffer, order: self.order()? };
        if matches!(self.test, Test::Read | Test::Reread) {
            ready.move_record(true)?;
            seek(&ready.file, SeekFrom::Start(0)).context("seek in", || &ready.path)?;
        }
        if self.parameters.purge_bytes > 0 {
            std::hint::black_box(memory::zeroed(self.parameters.purge_bytes)?);
        }
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
                return Err(Error::Invalid("this file system has no direct I/O: leave out --direct".into()));
            };
            let multiple = if self.test.reads() { asked.read } else { asked.offset };
            if self.point.record % multiple != 0 {
                let message = format!("with --direct the record must be a multiple of {multiple} bytes here");
                return Err(Error::Invalid(message));
            }
        }
        Ok(opened)
    }

    fn order(&self) -> Result<Option<Vec<u64>>> {
        if !self.test.is_random() {
            return Ok(None);
        }
        let records = self.point.size / self.point.record as u64;
        let mut order: Vec<u64> = memory::room_for("the shuffled records", records)?;
        order.extend(0..records);
        shuffle(&mut order, &mut Stream::new(self.parameters.seed, 0));
        Ok(Some(order))
    }

    fn work(&self, mut ready: Ready, recorder: &mut Recorder<'_>) -> Result<Counted> {
        let (record, start) = (self.point.record as u64, now_ns());
        let class = if self.test.reads() { Syscall::Read } else { Syscall::Write };
        let (mut bytes, mut ended) = (0, None);
        let order = ready.order.take();
        for index in 0..self.point.size / record {
            recorder.check()?;
            if ended.is_none() && self.one_done.load(Ordering::Relaxed) {
                self.flush(&ready, recorder)?;
                ended = Some((bytes, now_ns() - start));
                // The file has to be whole for the tests to come.
                if self.test != Test::Write {
                    break;
                }
            }
            if let Some(order) = &order {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                seek(&ready.file, SeekFrom::Start(order[index] * record))
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

    fn flush(&self, ready: &Ready, recorder: &mut Recorder<'_>) -> Result<()> {
        if self.parameters.flush {
            fsync(&ready.file).context("fsync", || &ready.path)?;
            recorder.lap(Syscall::Fsync);
        }
        Ok(())
    }

    /// Does what was left out of the time.
    fn settle(&self, file: Option<(OwnedFd, PathBuf)>) -> Result<()> {
        match file {
            Some((file, path)) if !self.parameters.flush => fsync(&file).context("fsync", || path),
            _ => Ok(()),
        }
    }
}

impl Ready {
    /// Reads or writes the next record as a whole.
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
