//! Hash maps and sets for keys that nobody chooses in order to do harm slowly: inode numbers,
//! owners, packed extensions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::random::mix;

/// A map with the fast hash.
pub type FastMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A set with the fast hash.
pub type FastSet<K> = rustc_hash::FxHashSet<K>;

/// Which file a name stands for, in one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device, both numbers.
    pub device: u64,
    /// The inode.
    pub inode: u64,
}

const SHARDS: usize = 64;

/// The files with several names that were met already, shared between threads.
#[derive(Debug)]
pub struct SeenFiles([Mutex<FastSet<FileId>>; SHARDS]);

impl Default for SeenFiles {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl SeenFiles {
    /// Whether this is the first time.
    pub fn is_first(&self, file: FileId) -> bool {
        self.shard(file).insert(file)
    }

    fn shard(&self, file: FileId) -> MutexGuard<'_, FastSet<FileId>> {
        let index = usize::try_from(mix(file.inode) % SHARDS as u64).unwrap_or(0);
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
