//! IOzone's tests with one file per thread: write, rewrite, read, reread, random read, random write.
//!
//! The timed section is that of IOzone 3.489, according to its system calls. Before each test the file is opened;
//! before a sequential test it is also synced. Before read and reread, the first record is read once. The random tests
//! seek to each record exactly once, in one shuffled order that reads, writes and all threads share. `fsync` and
//! `close` are timed if requested, also for reads. With several threads, the first thread that finishes ends the count
//! of the others. The data are like IOzone's: zeros except for the first eight bytes of each page.
//!
//! Unlike IOzone, the tests can be repeated in rounds, each with its own files, because a test of a small file takes
//! only milliseconds. The bandwidth is then that of all rounds: bytes divided by time.

mod bench;

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::document::{Bandwidth, Operation, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measured;
use crate::measure::clock::seconds;
use crate::measure::phase::NOTHING;
use crate::measure::recorder::Recorder;
use crate::memory;
use crate::room::{self, Need};
use crate::sys;
use crate::units::{parse_length, parse_size};
use crate::workset::{FileOrder, Shape, WorkSet};
use bench::{Bench, Counted, Files, Kit, Ready};

/// Bytes of memory that IOzone touches before it creates its first file: two buffers of 18 MiB. The same is done here,
/// so that the file does not get the pages that the previous program freed, which are still in the CPU cache.
const TOUCHED: usize = 2 * (18 << 20);
/// Name of the work directory that is created in the user's directory.
pub const WORK_DIRECTORY: &str = "fslab-iozone";
const LETTER: u8 = b'f';

/// A test of IOzone.
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

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of IOzone")]
pub struct Parameters {
    /// Existing directory to work in.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Tests to run, in this order.
    #[arg(skip)]
    pub tests: Vec<Test>,
    /// Size of each thread's file; several for a sweep (-s).
    #[arg(long = "size", value_name = "LIST", value_delimiter = ',', default_value = "512k",
          value_parser = parse_size)]
    pub sizes_bytes: Vec<u64>,
    /// Record length: size of a read or write; several for a sweep (-r).
    #[arg(long = "record", value_name = "LIST", value_delimiter = ',', default_value = "4k",
          value_parser = parse_size)]
    pub records_bytes: Vec<u64>,
    /// Include fsync in the measured time (-e).
    #[arg(long)]
    pub flush: bool,
    /// Include close in the measured time (-c).
    #[arg(long)]
    pub close: bool,
    /// Bypass the page cache with `O_DIRECT` (-I).
    #[arg(long)]
    pub direct: bool,
    /// Each write reaches the device: `O_SYNC` (-o).
    #[arg(long)]
    pub sync: bool,
    /// Purge a CPU cache of this size before each test; default: no purge (-p, -S).
    #[arg(long = "purge", value_name = "SIZE", value_parser = parse_length,
          default_value = "0", hide_default_value = true)]
    pub purge_bytes: usize,
    /// Repeat the tests up to N times, each time with files of their own; the bandwidth is that of all rounds.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Stop repeating once each test has taken so many seconds in total; default: all rounds.
    #[arg(long = "enough", value_name = "SECONDS", requires = "rounds")]
    pub enough_seconds: Option<f64>,
    /// Keep the files, for a later run without test 0 (-w).
    #[arg(long)]
    pub keep: bool,
    /// Random seed of the order of the random tests.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// A file size and a record length, both in bytes.
#[derive(Debug, Clone, Copy)]
struct Point {
    size: u64,
    record: usize,
}

impl Parameters {
    /// Return the points in IOzone's order. Fails if a file size is not a multiple of a record length, or if there is
    /// no test or no point.
    fn points(&self) -> Result<Vec<Point>> {
        let mut points = Vec::new();
        for &size in &self.sizes_bytes {
            for &record in self.records_bytes.iter().filter(|&&record| record <= size) {
                if record == 0 || size % record != 0 {
                    let message =
                        format!("the file size {size} is not a multiple of the record length {record}");
                    return Err(Error::Invalid(message));
                }
                let record = usize::try_from(record).map_err(|_| too_long(record))?;
                points.push(Point { size, record });
            }
        }
        if points.is_empty() || self.tests.is_empty() {
            return Err(Error::Invalid("no test, or every file is smaller than a record".into()));
        }
        Ok(points)
    }

    fn shape(&self) -> Shape {
        let threads = self.measured.threads;
        let files = threads as u64 * u64::from(self.rounds);
        Shape { files, directories: 1, threads, order: FileOrder::Created, seed: self.seed }
    }

    /// Return an error if the largest files do not fit into the directory, or the buffers into memory.
    fn check_room(&self, points: &[Point]) -> Result<()> {
        self.shape().check()?;
        let directory = sys::open_root(&self.directory).context("open", || &self.directory)?;
        let largest = points.iter().map(|point| point.size).max().unwrap_or(0);
        let longest = points.iter().map(|point| point.record).max().unwrap_or(0);
        let of_each = longest.saturating_add(self.purge_bytes) as u64;
        let memory = of_each.saturating_mul(self.measured.threads as u64);
        memory::need("the buffers of all threads", memory)?;
        let mut need = Need { entries: 2, memory, ..Need::default() };
        need.files(self.shape().files, largest);
        // Nearly all bytes are zeros, which a compressing file system stores in almost no space.
        need.least = 0;
        room::check(directory, &self.directory, &need)
    }
}

fn too_long(record: u64) -> Error {
    Error::Invalid(format!("a record of {record} bytes is too long"))
}

/// Run all tests of a point, then those of the next point with new files.
///
/// # Errors
/// Fails if a file cannot be created, read or written. If the run includes `write`, its files are then removed, except
/// after a signal. The kind is `exists` if files of an earlier run exist, and `not_found` if `write` is not included
/// and there are none.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let points = parameters.points()?;
    let makes = parameters.tests.contains(&Test::Write);
    if points.len() > 1 && (!makes || parameters.keep) {
        return Err(Error::Invalid(
            "several sizes or records need test 0 (write), and cannot keep the files".into(),
        ));
    }
    if parameters.rounds == 0 {
        return Err(Error::Invalid("rounds must be at least 1".into()));
    }
    if makes {
        parameters.check_room(&points)?;
    }
    let _touched = std::hint::black_box(memory::zeroed(TOUCHED)?);
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

/// Run all tests of a point, round after round. A round begins with files that no test has used.
fn run_point(
    parameters: &Parameters,
    set: &WorkSet,
    point: Point,
    operations: &mut Vec<Operation>,
) -> Result<Vec<Value>> {
    let kit = Kit::new(parameters, point)?;
    let mut touched = None;
    let mut totals: Vec<Total> = parameters.tests.iter().map(|_| Total::default()).collect();
    for round in 0..parameters.rounds {
        let files = Files { set, round };
        for (&test, total) in parameters.tests.iter().zip(&mut totals) {
            let phase = parameters.measured.phase(test.name(), Bandwidth::Counted)?;
            let bench = Bench::new(parameters, test, point, &kit);
            let prepare = |worker| bench.prepare(files, worker);
            let work = |_, ready: Ready<'_>, recorder: &mut Recorder<'_>| bench.work(ready, recorder);
            let (operation, counted) = phase.run(prepare, work, NOTHING)?;
            total.add(&counted);
            operations.push(operation);
            for Counted { file, .. } in counted {
                bench.settle(file)?;
            }
        }
        let is_enough = |seconds| totals.iter().all(|total| total.seconds >= seconds);
        if round + 1 == parameters.rounds || parameters.enough_seconds.is_some_and(is_enough) {
            break;
        }
        files.leave_the_cache(parameters.measured.threads)?;
        // The pages of these files are in the CPU cache, unless it is purged. The new buffer takes them, before the old
        // one is freed.
        if parameters.purge_bytes == 0 {
            touched = std::hint::black_box(Some(memory::zeroed(TOUCHED)?));
        }
    }
    drop(touched);
    let answers = parameters.tests.iter().zip(&totals).map(|(test, total)| {
        json!({
            "name": test.name(),
            "size_bytes": point.size,
            "record_bytes": point.record,
            "bandwidth_bytes_per_second": total.bandwidth(),
            "least_bytes": total.least_bytes,
            "rounds": total.rounds,
        })
    });
    Ok(answers.collect())
}

/// What one test did in all rounds.
#[derive(Debug, Default)]
struct Total {
    rounds: u32,
    bytes: u64,
    /// Bytes divided by the bandwidth of each round, summed.
    seconds: f64,
    /// The least that one thread had done when the first thread finished.
    least_bytes: Option<u64>,
}

impl Total {
    fn add(&mut self, counted: &[Counted]) {
        let bytes: u64 = counted.iter().map(|counted| counted.bytes).sum();
        self.rounds += 1;
        self.bytes += bytes;
        self.seconds += sum(counted).map_or(0.0, |rate| bytes as f64 / rate);
        self.least_bytes = counted.iter().map(|counted| counted.bytes).chain(self.least_bytes).min();
    }

    /// Return the bytes per second over all rounds. Returns `None` if they took no time.
    fn bandwidth(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes as f64 / self.seconds)
    }
}

/// Return the sum of the bandwidths of all threads in bytes per second, each over the thread's own time. Returns `None`
/// if one of these times is 0 or if nothing was transferred.
fn sum(counted: &[Counted]) -> Option<f64> {
    let rate = |counted: &Counted| (counted.ns > 0).then(|| counted.bytes as f64 / seconds(counted.ns));
    counted.iter().map(rate).sum::<Option<f64>>().filter(|&rate| rate > 0.0)
}
