//! Duplicate sets as the answer writes them, and what they come to. A data set's manifest is made from
//! the same, so that the two can be held against each other.

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::names;
use crate::walk::Troubles;

/// Files with the same contents, by their paths from the top.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DuplicateSet {
    size: u64,
    paths: Vec<Vec<u8>>,
}

impl DuplicateSet {
    /// A set of files of this size.
    pub fn new(size: u64, mut paths: Vec<Vec<u8>>) -> Self {
        paths.sort_unstable();
        Self { size, paths }
    }

    /// What could be saved.
    fn redundant_bytes(&self) -> u64 {
        self.size * (self.paths.len() as u64 - 1)
    }

    fn to_json(&self) -> Value {
        let paths: Vec<_> = self.paths.iter().map(|path| names::to_json(path)).collect();
        json!({ "size_bytes": self.size, "paths": paths })
    }
}

/// What some sets come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSummary {
    /// How many sets.
    pub sets: u64,
    /// How many files are in them.
    pub duplicate_files: u64,
    /// How many of those could go.
    pub redundant_files: u64,
    /// What would be saved then.
    pub redundant_bytes: u64,
    /// The same for the same sets of paths, in any order; XXH3 of sizes and sorted paths, added up.
    pub digest: String,
}

impl SetSummary {
    /// Adds up.
    pub fn of(sets: &[DuplicateSet]) -> Self {
        let files: u64 = sets.iter().map(|set| set.paths.len() as u64).sum();
        let hash = |set: &DuplicateSet| {
            let mut bytes = set.size.to_le_bytes().to_vec();
            bytes.extend(set.paths.join(&0));
            xxh3_64(&bytes)
        };
        let digest = sets.iter().map(hash).fold(0, u64::wrapping_add);
        Self {
            sets: sets.len() as u64,
            duplicate_files: files,
            redundant_files: files - sets.len() as u64,
            redundant_bytes: sets.iter().map(DuplicateSet::redundant_bytes).sum(),
            digest: format!("{digest:016x}"),
        }
    }

    /// The part of an answer or a manifest that is about the sets.
    pub fn value(&self) -> Value {
        json!({
            "sets": self.sets,
            "duplicate_files": self.duplicate_files,
            "redundant_files": self.redundant_files,
            "redundant_bytes": self.redundant_bytes,
            "digest": self.digest,
        })
    }

    /// The whole answer, with the most wasteful sets listed.
    pub(super) fn to_json(
        &self,
        sets: &[DuplicateSet],
        list: usize,
        scanned: &Scanned,
        troubles: &Troubles,
    ) -> Value {
        let mut worst: Vec<&DuplicateSet> = sets.iter().collect();
        worst.sort_by_key(|set| (std::cmp::Reverse(set.redundant_bytes()), &set.paths));
        let mut answer = self.value();
        answer["files"] = scanned.files.into();
        answer["bytes"] = scanned.bytes.into();
        answer["hard_links"] = scanned.hard_links.into();
        answer["listed"] = worst.into_iter().take(list).map(DuplicateSet::to_json).collect();
        answer["troubles"] = json!(troubles);
        answer
    }
}

/// What was looked at.
pub(super) struct Scanned {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) hard_links: u64,
}
