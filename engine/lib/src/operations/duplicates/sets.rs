//! Duplicate sets and their totals as written in the answer. The manifest of a data set is made by the same code, so
//! that both can be compared.

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::names;
use crate::walk::Troubles;

/// Files with identical contents, by their paths relative to the top directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DuplicateSet {
    size: u64,
    paths: Vec<Vec<u8>>,
}

impl DuplicateSet {
    /// Create a set of files of this size in bytes.
    pub fn new(size: u64, mut paths: Vec<Vec<u8>>) -> Self {
        paths.sort_unstable();
        Self { size, paths }
    }

    /// Return the bytes that removing all files but one would save.
    fn redundant_bytes(&self) -> u64 {
        self.size * (self.paths.len() as u64 - 1)
    }

    fn to_json(&self) -> Value {
        let paths: Vec<_> = self.paths.iter().map(|path| names::to_json(path)).collect();
        json!({ "size_bytes": self.size, "paths": paths })
    }
}

/// Totals of duplicate sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSummary {
    /// Number of sets.
    pub sets: u64,
    /// Number of files in all sets.
    pub duplicate_files: u64,
    /// Number of files that could be removed, leaving one of each set.
    pub redundant_files: u64,
    /// Bytes that removing them would save.
    pub redundant_bytes: u64,
    /// Digest that does not depend on the order of the sets: the sum modulo 2⁶⁴ of the XXH3 hashes (64 bits) of size
    /// and sorted paths of each set, as 16 hexadecimal digits.
    pub digest: String,
}

impl SetSummary {
    /// Compute the totals of these sets.
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

    /// Return the keys about the sets that an answer and a manifest have in common.
    pub fn value(&self) -> Value {
        json!({
            "sets": self.sets,
            "duplicate_files": self.duplicate_files,
            "redundant_files": self.redundant_files,
            "redundant_bytes": self.redundant_bytes,
            "digest": self.digest,
        })
    }

    /// Return the complete answer. It lists up to `list` sets with the most redundant bytes.
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

/// Totals of the scanned files; `files` also counts those below the minimum size, `bytes` does not.
pub(super) struct Scanned {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) hard_links: u64,
}
