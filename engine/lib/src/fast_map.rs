//! Hash maps and sets with a fast hash function that does not resist collision attacks. They are for keys that no
//! attacker chooses: inode numbers, owners, packed extensions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::random::mix;

/// A hash map with the fast hash function.
pub type FastMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A hash set with the fast hash function.
pub type FastSet<K> = rustc_hash::FxHashSet<K>;

/// The identity of a file: all hard links of a file have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Device number (`st_dev`), major and minor.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

const SHARDS: usize = 64;

/// The set of files with several hard links that were visited already. It is shared between threads and sharded by
/// inode number to avoid lock contention.
#[derive(Debug)]
pub struct SeenFiles([Mutex<FastSet<FileId>>; SHARDS]);

impl Default for SeenFiles {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl SeenFiles {
    /// Record the file. Returns true if it was not recorded before.
    pub fn is_first(&self, file: FileId) -> bool {
        self.shard(file).insert(file)
    }

    fn shard(&self, file: FileId) -> MutexGuard<'_, FastSet<FileId>> {
        let index = usize::try_from(mix(file.inode) % SHARDS as u64).unwrap_or(0);
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
