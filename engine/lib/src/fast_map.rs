//! Hash maps and sets for keys that nobody chooses in order to do harm slowly: inode numbers,
//! owners, packed extensions.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::random::mix;

/// A map with the fast hash.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;
/// A set with the fast hash.
pub type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

/// Mixes whole words (splitmix64's finaliser).
#[derive(Debug, Default, Clone, Copy)]
pub struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
}

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
