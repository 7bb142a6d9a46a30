//! Duplicate search: finds sets of files with identical contents.
//!
//! Files are compared by size first, then by the hash of their first and last 4 KiB. The remaining candidates are
//! compared byte by byte; several are read together, so that each is read once. Files of up to 16 KiB are read
//! completely in the second step and compared by 128 bits of their BLAKE3 hash. If several files of a group differ from
//! its first file, they are grouped by full hashes before they are compared again. Hard links to the same file are not
//! duplicates.

mod collect;
mod compare;
mod digest;
mod heads;
mod part;
mod sets;

use serde::Serialize;

use self::collect::Collector;
use self::heads::Heads;
use self::sets::Scanned;
pub use self::sets::{DuplicateSet, SetSummary};
use crate::document::{Bandwidth, Outcome};
use crate::error::Result;
use crate::measure::Measured;
use crate::measure::phase::NOTHING;
use crate::measure::whole::Whole;
use crate::units::parse_size;
use crate::walk::{Walked, walk};

/// Bytes read from a file at a time in a comparison. The two buffers of a thread fit into the L2 cache.
const PIECE: usize = 64 << 10;

/// Algorithm of the full hashes, which are computed only where they are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    /// BLAKE3, 256 bits, cryptographic.
    Blake3,
    /// XXH3, 128 bits, faster, not cryptographic.
    #[default]
    Xxh3,
}

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Tree to walk.
    #[serde(flatten)]
    #[command(flatten)]
    pub walked: Walked,
    /// Skip files that are smaller.
    // Empty files are never compared: 0 has the same effect as 1.
    #[arg(long = "minimum", value_name = "SIZE", default_value = "1", value_parser = parse_size)]
    pub minimum_bytes: u64,
    /// Hash of whole files, used where files of the same size, beginning and end differ.
    #[arg(long, value_enum, default_value_t)]
    pub hash: Hash,
    /// Maximum number of sets to list, those with the most redundant bytes first.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub list: usize,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Run the duplicate search.
///
/// # Errors
/// Fails if the top directory cannot be opened. Files and directories below it that vanish or cannot be accessed are
/// counted instead.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    let tree = parameters.walked.open()?;
    let whole = Whole::begin();
    let phase = |name, bandwidth| parameters.measured.phase(name, bandwidth);
    let shared = collect::Shared::new(parameters.minimum_bytes);
    let make = |_| Ok(Collector::new(&shared));
    let (walked, collectors, mut troubles) =
        walk(&phase("walk", Bandwidth::Meaningless)?, &tree, parameters.walked.order, make, NOTHING)?;
    let parts = collectors.into_iter().map(Collector::into_parts).collect();
    let mut files = collect::Files::new(tree, parts, shared)?;
    let scanned_bytes = files.bytes();
    let hard_links = files.keep_same_sizes()?;
    let (headed, heads) = heads::hash_heads(&phase("head-tail", Bandwidth::Counted)?, &files)?;
    let Heads { settled, alike, troubles: of_heads } = heads;
    troubles.merge(of_heads);
    let compared = compare::compare(&phase, &files, alike, parameters.hash, &mut troubles)?;
    let mut sets: Vec<_> =
        settled.into_iter().chain(compared.sets).map(|members| files.set(&members)).collect();
    sets.sort_unstable();
    let mut operations = vec![walked, headed];
    operations.extend(compared.operations);
    operations.push(whole.end("duplicates", &operations));
    let scanned = Scanned { files: operations[0].count, bytes: scanned_bytes, hard_links };
    let answer = SetSummary::of(&sets).to_json(&sets, parameters.list, &scanned, &troubles);
    let warnings = troubles.warning().into_iter().collect();
    Ok(Outcome { operations, answer: Some(answer), warnings })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::measure::clock::fake;
    use crate::measure::phase::Phase;
    use crate::measure::recorder::Recorder;
    use crate::measure::syscall::Syscall;
    use crate::measure::{Detail, Measure};
    use crate::walk::{Order, Tree};

    const MEASURE: Measure = Measure { latency: Detail::Syscalls, interval_ns: None };

    /// Twenty identical files of the given length in a temporary directory, which is removed on drop.
    struct Alike(PathBuf, collect::Files);

    impl Alike {
        fn new(length: usize) -> Self {
            let directory = std::env::temp_dir().join(format!("fslab-alike-{}-{length}", std::process::id()));
            fs::create_dir(&directory).unwrap();
            for number in 0..20 {
                fs::write(directory.join(number.to_string()), vec![7; length]).unwrap();
            }
            let shared = collect::Shared::new(1);
            let tree = Tree::open(&directory, true).unwrap();
            let phase = Phase::new("walk", 1, &MEASURE, Bandwidth::Meaningless).unwrap();
            let make = |_| Ok(Collector::new(&shared));
            let (_, collectors, _) = walk(&phase, &tree, Order::Depth, make, NOTHING).unwrap();
            let parts = collectors.into_iter().map(Collector::into_parts).collect();
            let mut files = collect::Files::new(tree, parts, shared).unwrap();
            files.keep_same_sizes().unwrap();
            Self(directory, files)
        }
    }

    impl Drop for Alike {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Check the recorded times with a clock that only hashing and comparing advance: no system call takes any time,
    /// each close is counted, and the operation includes the time of hashing and comparing.
    fn assert_told_apart(work: impl FnOnce(&mut Recorder<'_>)) {
        let cancelled = AtomicBool::new(false);
        let mut recorder = Recorder::new(&MEASURE, &cancelled);
        fake::start();
        recorder.begin();
        work(&mut recorder);
        let (operation, calls) = recorder.told();
        assert!(operation.unwrap().max >= digest::tests::LONG);
        for (class, summary) in &calls {
            assert_eq!(summary.latency_ns.max, 0, "{class:?}");
        }
        assert_eq!(calls[&Syscall::Open].count, calls[&Syscall::Close].count);
    }

    #[test]
    fn hashing_and_comparing_are_no_system_calls() {
        for length in [1000, 200_000] {
            let alike = Alike::new(length);
            assert_told_apart(|recorder| heads::hash_one(&alike.1, 0, recorder));
            assert_told_apart(|recorder| part::hash_one(&alike.1, 0, Hash::Xxh3, recorder));
            assert_told_apart(|recorder| part::hash_one(&alike.1, 0, Hash::Blake3, recorder));
            assert_told_apart(|recorder| compare::compare_one(&alike.1, (0..20).collect(), recorder));
        }
    }
}
