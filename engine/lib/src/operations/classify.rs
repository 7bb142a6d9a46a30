//! File classification: determines the kind of each regular file of a tree by its name, its contents, or both.

use std::ffi::CStr;

use rustix::fs::{FileType, Mode, OFlags};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::document::{Bandwidth, Outcome};
use crate::error::Result;
use crate::kinds::{Kind, SNIFF_BYTES};
use crate::measure::Measured;
use crate::measure::phase::NOTHING;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::sys;
use crate::walk::{Directory, Entry, FileVisitor, Handle, Tried, Visit, Walked, walk};

/// Source from which the kind of a file is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The file name; no file is opened.
    Name,
    /// The first 512 bytes of the file.
    Content,
    /// Both; also counts how often they agree.
    #[default]
    Both,
}

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Tree to walk.
    #[serde(flatten)]
    #[command(flatten)]
    pub walked: Walked,
    /// What determines the type.
    #[arg(long, value_enum, default_value_t)]
    pub by: By,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Run the classification.
///
/// # Errors
/// Fails if the top directory cannot be opened. Files and directories below it that vanish or cannot be accessed are
/// counted instead.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let tree = parameters.walked.open()?;
    let phase = parameters.measured.phase("classify", Bandwidth::Meaningless)?;
    let make = |_| Ok(Classifier { by: parameters.by, counts: Counts::default() });
    let (operation, classifiers, troubles) = walk(&phase, &tree, parameters.walked.order, make, NOTHING)?;
    let mut counts = Counts::default();
    for classifier in classifiers {
        counts.merge(&classifier.counts);
    }
    let asked = |by, counts: &[u64]| (parameters.by != by).then(|| table(counts));
    let answer = json!({
        "files": counts.files,
        "by_name": asked(By::Content, &counts.by_name),
        "by_content": asked(By::Name, &counts.by_content),
        "agreed": (parameters.by == By::Both).then_some(counts.agreed),
        "troubles": &troubles,
    });
    let warnings = troubles.warning().into_iter().collect();
    Ok(Outcome { operations: vec![operation], answer: Some(answer), warnings })
}

fn table(counts: &[u64]) -> Map<String, Value> {
    Kind::ALL.iter().zip(counts).map(|(kind, count)| (kind.name().to_owned(), Value::from(*count))).collect()
}

#[derive(Debug, Default)]
struct Counts {
    files: u64,
    by_name: [u64; Kind::ALL.len()],
    by_content: [u64; Kind::ALL.len()],
    agreed: u64,
}

impl Counts {
    fn merge(&mut self, other: &Self) {
        self.files += other.files;
        self.agreed += other.agreed;
        for (mine, theirs) in self.by_name.iter_mut().zip(other.by_name) {
            *mine += theirs;
        }
        for (mine, theirs) in self.by_content.iter_mut().zip(other.by_content) {
            *mine += theirs;
        }
    }
}

/// The visitor of one thread.
struct Classifier {
    by: By,
    counts: Counts,
}

fn look_into(directory: &Handle, name: &CStr, recorder: &mut Recorder<'_>) -> Visit<Kind> {
    let flags = sys::OPEN_READ | OFlags::NONBLOCK;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).tried("open")?;
    recorder.lap(Syscall::Open);
    let mut head = [0; SNIFF_BYTES];
    let count = sys::read_head(&file, &mut head).tried("read")?;
    recorder.lap(Syscall::Read);
    drop(file);
    recorder.lap(Syscall::Close);
    let kind = Kind::by_content(&head[..count]);
    recorder.skip();
    Ok(kind)
}

impl FileVisitor for Classifier {
    fn file(
        &mut self,
        directory: &Directory<'_, ()>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        if entry.kind != FileType::RegularFile {
            return Ok(());
        }
        let content = match self.by {
            By::Name => None,
            By::Content | By::Both => Some(look_into(directory.handle, entry.name, recorder)?),
        };
        let name = (self.by != By::Content).then(|| Kind::by_name(entry.name.to_bytes()));
        self.counts.files += 1;
        self.counts.agreed += u64::from(name.is_some() && name == content);
        if let Some(kind) = name {
            self.counts.by_name[kind as usize] += 1;
        }
        if let Some(kind) = content {
            self.counts.by_content[kind as usize] += 1;
        }
        recorder.end(0);
        Ok(())
    }
}
