//! IOzone's tests of one file per thread: write, rewrite, read, reread, random read, random write.
//!
//! What is timed is what IOzone 3.489 times, as seen of its system calls: the file is open and synced before;
//! each read test has read its first record before; random tests seek to each record once, in one shuffled order
//! that reads, writes and all threads share; fsync and close are in the time if asked for, of reads too. Of several
//! threads the first that is done ends the count of the others. The data are IOzone's kind: zeros but for eight
//! bytes of each page.

mod bench;

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::document::{Bandwidth, Operation, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measure;
use crate::measure::clock::seconds;
use crate::measure::phase::{NOTHING, Phase};
use crate::measure::recorder::Recorder;
use crate::memory;
use crate::room::{self, Need};
use crate::sys;
use crate::workset::{FileOrder, Shape, WorkSet};
use bench::{Bench, Counted, Kit, Ready};

/// How much memory IOzone has touched before it makes its first file: two buffers of 18 MiB. The pages of that file
/// are then others than those that the last program gave back, which the processor's cache still holds.
const TOUCHED: usize = 2 * (18 << 20);
/// The directory that is made inside the user's.
pub const WORK_DIRECTORY: &str = "fslab-iozone";
const LETTER: u8 = b'f';

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
        return Err(Error::Invalid(
            "several sizes or records need test 0 (write), and cannot keep the files".into(),
        ));
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

fn run_point(
    parameters: &Parameters,
    set: &WorkSet,
    point: Point,
    operations: &mut Vec<Operation>,
) -> Result<Vec<Value>> {
    let mut answers = Vec::new();
    let kit = Kit::new(parameters, point)?;
    for &test in &parameters.tests {
        let phase = Phase::new(test.name(), parameters.threads, &parameters.measure, Bandwidth::Counted)?;
        let bench = Bench::new(parameters, test, point, &kit);
        let prepare = |worker| bench.prepare(set, worker);
        let work = |_, ready: Ready<'_>, recorder: &mut Recorder<'_>| bench.work(ready, recorder);
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
