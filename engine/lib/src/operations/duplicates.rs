//! Duplicate search: sets of files with the same contents, each proven.
//!
//! Sizes first; then the head and the tail; then the files that are still alike are compared byte by
//! byte, side by side, so that each is read once. Small files are read whole at once and told by their
//! BLAKE3 hash. Where a comparison leaves several files over, full hashes part them first. Names of
//! one and the same file are not duplicates.

mod collect;
mod compare;
mod heads;
mod part;
mod sets;

use std::path::PathBuf;

use serde::Serialize;

use self::collect::Collector;
use self::heads::Heads;
use self::sets::Scanned;
pub use self::sets::{DuplicateSet, SetSummary};
use crate::document::{Bandwidth, Operation, Outcome, path_as_text};
use crate::error::Result;
use crate::measure::Measure;
use crate::measure::phase::{NOTHING, Phase};
use crate::walk::{Order, Tree, walk};

/// How full hashes are made, where they are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    /// BLAKE3, 256 bits: nobody can make two files alike to it.
    Blake3,
    /// XXH3, 128 bits: faster.
    #[default]
    Xxh3,
}

/// What is to be done.
#[derive(Debug, Clone, Serialize)]
pub struct Parameters {
    /// Where.
    #[serde(serialize_with = "path_as_text")]
    pub directory: PathBuf,
    /// Smaller files are left out; empty files have nothing to share, so at least 1.
    pub minimum_bytes: u64,
    /// How full hashes are made.
    pub hash: Hash,
    /// How many of the sets are listed, the most wasteful first.
    pub list: usize,
    /// With how many threads.
    pub threads: usize,
    /// Which directory comes next.
    pub order: Order,
    /// Whether directories on other file systems are left out.
    pub one_file_system: bool,
    /// What is measured.
    #[serde(flatten)]
    pub measure: Measure,
}

/// Does the work.
///
/// # Errors
/// If the directory at the top cannot be opened. Anything below it that vanishes or refuses is counted.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let tree = Tree::open(&parameters.directory, !parameters.one_file_system)?;
    let phase = |name, bandwidth| Phase::new(name, parameters.threads, &parameters.measure, bandwidth);
    let shared = collect::Shared::new(parameters.minimum_bytes);
    let make = |_| Collector::new(&shared);
    let (walked, collectors, mut troubles) =
        walk(&phase("walk", Bandwidth::Meaningless)?, &tree, parameters.order, make, NOTHING)?;
    let parts = collectors.into_iter().map(Collector::into_parts).collect();
    let mut files = collect::Files::new(tree, parts, shared);
    let scanned_bytes = files.bytes();
    let hard_links = files.keep_same_sizes();
    let (headed, heads) = heads::hash_heads(&phase("head-tail", Bandwidth::Counted)?, &files)?;
    let Heads { settled, alike, troubles: of_heads } = heads;
    troubles.merge(of_heads);
    let compared = compare::compare(&phase, &files, alike, parameters.hash, &mut troubles)?;
    let mut sets: Vec<_> =
        settled.into_iter().chain(compared.sets).map(|members| files.set(&members)).collect();
    sets.sort_unstable();
    let mut operations = vec![walked, headed];
    operations.extend(compared.operations);
    operations.push(Operation::total("duplicates", &operations));
    let scanned = Scanned { files: operations[0].count, bytes: scanned_bytes, hard_links };
    let answer = SetSummary::of(&sets).to_json(&sets, parameters.list, &scanned, &troubles);
    let warnings = troubles.warning().into_iter().collect();
    Ok(Outcome { operations, answer: Some(answer), warnings })
}
