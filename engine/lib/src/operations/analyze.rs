//! Disk-space analysis: totals of a tree by directory, extension, age and owner. A file with several hard links is
//! counted once, in the directory where it is found first.

mod totals;

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::FileType;
use serde::Serialize;

use self::totals::{Counts, Report};
use crate::attributes::Attributes;
use crate::document::{Bandwidth, Outcome};
use crate::error::Result;
use crate::fast_map::SeenFiles;
use crate::measure::Measured;
use crate::measure::phase::NOTHING;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::walk::{Directory, Entry, Handle, Tree, Tried, Visit, Visitor, Walked, walk};

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Tree to walk.
    #[serde(flatten)]
    #[command(flatten)]
    pub walked: Walked,
    /// Report directories separately down to this depth.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub depth: usize,
    /// Maximum number of lines of each list; 0: all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Compute ages relative to this time, in seconds since 1970; default: now.
    #[arg(long, value_name = "SECONDS")]
    pub now: Option<i64>,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Run the analysis.
///
/// # Errors
/// Fails if the top directory cannot be opened. Files and directories below it that vanish or cannot be accessed are
/// counted instead.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let tree = parameters.walked.open()?;
    let phase = parameters.measured.phase("analyze", Bandwidth::Meaningless)?;
    let shared = Shared::new(parameters);
    let make = |_| Ok(Analyzer { shared: &shared, counts: Counts::default() });
    let (operation, analyzers, troubles) = walk(&phase, &tree, parameters.walked.order, make, NOTHING)?;
    let mut counts = Counts::default();
    for analyzer in analyzers {
        counts.merge(analyzer.counts);
    }
    let branches = shared.branches.into_inner().unwrap_or_else(PoisonError::into_inner);
    let report = Report { counts, branches, top: parameters.top };
    Ok(Outcome {
        operations: vec![operation],
        answer: Some(report.to_json(&troubles)),
        warnings: troubles.warning().into_iter().collect(),
    })
}

/// A directory that is counted separately, and the index of its parent; `None` for the top directory.
#[derive(Debug)]
struct Branch {
    path: Vec<u8>,
    parent: Option<usize>,
}

/// State shared by all threads.
struct Shared {
    depth: usize,
    now: i64,
    seen: SeenFiles,
    branches: Mutex<Vec<Branch>>,
}

impl Shared {
    fn new(parameters: &Parameters) -> Self {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = parameters.now.unwrap_or_else(|| i64::try_from(clock()).unwrap_or(i64::MAX));
        Self { depth: parameters.depth, now, seen: SeenFiles::default(), branches: Mutex::default() }
    }

    fn add_branch(&self, branch: Branch) -> Result<usize> {
        let mut branches = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        memory::grow("the list of directories", &mut branches, 1)?;
        branches.push(branch);
        Ok(branches.len() - 1)
    }
}

/// The visitor of one thread.
struct Analyzer<'a> {
    shared: &'a Shared,
    counts: Counts,
}

impl Analyzer<'_> {
    fn add_directory(&mut self, branch: usize, opened: &Handle, recorder: &mut Recorder<'_>) -> Visit {
        let attributes = Attributes::of_open(opened).tried("stat")?;
        recorder.lap(Syscall::Stat);
        self.counts.add_directory(branch, &attributes);
        Ok(())
    }
}

impl Visitor for Analyzer<'_> {
    /// Index of the branch in which a directory is counted.
    type Data = usize;

    fn root(&mut self, tree: &Tree, recorder: &mut Recorder<'_>) -> Visit<usize> {
        let branch = self.shared.add_branch(Branch { path: Vec::new(), parent: None })?;
        recorder.begin();
        self.add_directory(branch, tree.root(), recorder)?;
        Ok(branch)
    }

    fn enter(
        &mut self,
        parent: &Directory<'_, usize>,
        name: &CStr,
        opened: &Handle,
        recorder: &mut Recorder<'_>,
    ) -> Visit<Option<usize>> {
        let mut branch = parent.node.data;
        if parent.node.depth() < self.shared.depth {
            let mut path = parent.node.relative_path();
            path.extend((!path.is_empty()).then_some(b'/'));
            path.extend(name.to_bytes());
            branch = self.shared.add_branch(Branch { path, parent: Some(branch) })?;
        }
        self.add_directory(branch, opened, recorder)?;
        Ok(Some(branch))
    }

    #[inline]
    fn file(
        &mut self,
        directory: &Directory<'_, usize>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        let attributes = Attributes::of(directory.handle, entry.name).tried("stat")?;
        recorder.end_sole(Syscall::Stat, 0);
        // The entry was a file when the directory was listed and is a directory now. Do not descend into it.
        if attributes.kind == FileType::Directory {
            return Ok(());
        }
        let again = attributes.links > 1 && !self.shared.seen.is_first(attributes.id);
        if again {
            self.counts.hard_links += 1;
        } else {
            self.counts.add_file(directory.node.data, entry.name.to_bytes(), &attributes, self.shared.now);
        }
        Ok(())
    }
}
