//! Hashes of contents and the comparison of two buffers: all work on contents between system calls.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Hash;

/// Advance the clock of the tests by `tests::LONG`, because hashing and comparing take time. Does nothing outside of
/// tests.
fn spend() {
    #[cfg(test)]
    crate::measure::clock::fake::spend(tests::LONG);
}

/// Return the BLAKE3 hash of the contents of a small file.
pub(super) fn whole(contents: &[u8]) -> blake3::Hash {
    spend();
    blake3::hash(contents)
}

/// Return the XXH3 hash (128 bits) of the head and the tail of a file.
pub(super) fn ends(contents: &[u8]) -> u128 {
    spend();
    xxh3_128(contents)
}

/// Return whether two buffers are equal.
pub(super) fn same(first: &[u8], other: &[u8]) -> bool {
    spend();
    first == other
}

/// Incremental hash of a file. An XXH3 hash fills the first 16 bytes of the result, the others are 0.
pub(super) enum Digest {
    Blake3(Box<blake3::Hasher>),
    Xxh3(Box<Xxh3>),
}

impl Digest {
    pub(super) fn new(hash: Hash) -> Self {
        match hash {
            Hash::Blake3 => Self::Blake3(Box::default()),
            Hash::Xxh3 => Self::Xxh3(Box::default()),
        }
    }

    pub(super) fn update(&mut self, piece: &[u8]) {
        spend();
        match self {
            Self::Blake3(hasher) => _ = hasher.update(piece),
            Self::Xxh3(hasher) => hasher.update(piece),
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        spend();
        let mut result = [0; 32];
        match self {
            Self::Blake3(hasher) => result = *hasher.finalize().as_bytes(),
            Self::Xxh3(hasher) => result[..16].copy_from_slice(&hasher.digest128().to_le_bytes()),
        }
        result
    }
}

#[cfg(test)]
pub(super) mod tests {
    /// Time in nanoseconds that each of these functions takes by the clock of the tests.
    pub(in super::super) const LONG: u64 = 1_000_000;
}
