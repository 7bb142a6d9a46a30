//! File search: finds the files of a tree whose contents match a pattern, and counts their matching lines.
//!
//! Binary files are searched as well, and there are no ignore rules.

mod pattern;
mod scan;

use std::ffi::CStr;

use rustix::fs::{FileType, Mode, OFlags};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::pattern::Pattern;
use self::scan::{Scanner, Window};
use crate::attributes::Attributes;
use crate::document::{Bandwidth, Outcome};
use crate::error::{Error, Result};
use crate::measure::Measured;
use crate::measure::phase::NOTHING;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::sys;
use crate::units::parse_length;
use crate::walk::{Directory, Entry, FileVisitor, Tried, Visit, Walked, walk};
use crate::{memory, names};

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Tree to walk.
    #[serde(flatten)]
    #[command(flatten)]
    pub walked: Walked,
    /// Text to search for.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub pattern: String,
    /// The pattern is a regular expression over bytes; ^ and $ are the start and end of a line.
    #[arg(long, short = 'E')]
    pub regex: bool,
    /// Ignore the case of ASCII letters.
    #[arg(long, short)]
    pub ignore_case: bool,
    /// Maximum number of matching files to list.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub list: usize,
    /// Size of a read, at least 4k.
    // A read may be longer, by the unused space for an incomplete line.
    #[arg(long = "buffer", value_name = "SIZE", default_value = "256k", value_parser = parse_length)]
    pub buffer_bytes: usize,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Run the search.
///
/// # Errors
/// Fails if the pattern or the buffer size is invalid, or if the top directory cannot be opened. Files and directories
/// below it that vanish or cannot be accessed are counted instead.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    if parameters.buffer_bytes < 4096 {
        return Err(Error::Invalid("the buffer must be at least 4 KiB".into()));
    }
    let pattern = Pattern::new(&parameters.pattern, parameters.regex, parameters.ignore_case)?;
    let tree = parameters.walked.open()?;
    memory::need(
        "the buffers of all threads",
        (parameters.buffer_bytes as u64).saturating_mul(parameters.measured.threads as u64),
    )?;
    let phase = parameters.measured.phase("search", Bandwidth::Counted)?;
    let make = |_| Searcher::new(&pattern, parameters);
    let (operation, searchers, troubles) = walk(&phase, &tree, parameters.walked.order, make, NOTHING)?;
    let mut found = Found::default();
    for searcher in searchers {
        found.merge(searcher.found)?;
    }
    let answer = json!({
        "files": operation.count,
        "bytes": operation.bytes,
        "files_matched": found.files,
        "lines_matched": found.lines,
        "matched": found.list(parameters.list),
        "troubles": &troubles,
    });
    let warnings = troubles.warning().into_iter().collect();
    Ok(Outcome { operations: vec![operation], answer: Some(answer), warnings })
}

/// Purpose of the memory, for error messages.
const LIST: &str = "the list of files found";

#[derive(Debug, Default)]
struct Found {
    files: u64,
    lines: u64,
    paths: Vec<(Vec<u8>, u64)>,
}

impl Found {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.files += other.files;
        self.lines += other.lines;
        memory::grow(LIST, &mut self.paths, other.paths.len())?;
        self.paths.extend(other.paths);
        Ok(())
    }

    fn list(mut self, limit: usize) -> Vec<Value> {
        self.paths.sort_unstable();
        let paths = self.paths.into_iter().take(limit);
        paths.map(|(path, lines)| json!({ "path": names::to_json(&path), "lines": lines })).collect()
    }
}

/// The visitor of one thread.
struct Searcher<'a> {
    scanner: Scanner<'a>,
    window: Window,
    list: usize,
    found: Found,
}

impl<'a> Searcher<'a> {
    fn new(pattern: &'a Pattern, parameters: &Parameters) -> Result<Self> {
        let window = Window::new(parameters.buffer_bytes, pattern)?;
        Ok(Self { scanner: Scanner::new(pattern), window, list: parameters.list, found: Found::default() })
    }

    fn note(&mut self, directory: &Directory<'_, ()>, name: &CStr, lines: u64) -> Result<()> {
        self.found.files += 1;
        self.found.lines += lines;
        if self.found.paths.len() < self.list {
            let mut path = directory.node.relative_path();
            path.extend((!path.is_empty()).then_some(b'/'));
            path.extend(name.to_bytes());
            memory::grow(LIST, &mut self.found.paths, 1)?;
            self.found.paths.push((path, lines));
        }
        Ok(())
    }
}

impl FileVisitor for Searcher<'_> {
    fn file(
        &mut self,
        directory: &Directory<'_, ()>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        if entry.kind != FileType::RegularFile {
            return Ok(());
        }
        let flags = sys::OPEN_READ | OFlags::NONBLOCK;
        let file = rustix::fs::openat(directory.handle, entry.name, flags, Mode::empty()).tried("open")?;
        recorder.lap(Syscall::Open);
        let mut progress = sys::Progress::new(Attributes::of_open(&file).tried("stat")?.size);
        recorder.lap(Syscall::Stat);
        self.scanner.start();
        self.window.clear();
        loop {
            let (count, is_last) = progress.read(&file, self.window.free()).tried("read all of")?;
            recorder.lap(Syscall::Read);
            recorder.moved(count);
            self.window.filled(count);
            let used = self.scanner.scan(self.window.bytes(), is_last)?;
            recorder.skip();
            if is_last {
                break;
            }
            self.window.consume(used);
            recorder.check()?;
        }
        drop(file);
        recorder.lap(Syscall::Close);
        if self.scanner.lines() > 0 {
            self.note(directory, entry.name, self.scanner.lines())?;
            recorder.skip();
        }
        recorder.end(0);
        Ok(())
    }
}
