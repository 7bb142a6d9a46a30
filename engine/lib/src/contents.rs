//! Contents of files that no file system can store once for two: random bytes by seed, file and block.
//!
//! A block is a stretch of a small pool of random bytes, combined with a random word of its own. No two
//! blocks are alike, and no compressor finds one in another, however far it looks back; and it takes a
//! fraction of the time that writing takes, so that it can be made while files are written.

use crate::random::{Stream, mix};

/// File systems deduplicate by blocks of this size, or of multiples of it.
pub const BLOCK: usize = 4096;
const WORD: usize = 8;
/// At how many places of the pool a block may start: the pool stays within the second-level cache.
const STARTS: usize = 8192;

/// What all contents are made from.
#[derive(Debug)]
pub struct Contents {
    pool: Vec<u64>,
    seed: u64,
}

impl Contents {
    /// The contents that depend on this seed.
    pub fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, 1 << 59);
        Self { pool: (0..STARTS + BLOCK / WORD).map(|_| stream.next_u64()).collect(), seed }
    }

    /// Fills the buffer with what the file of this identity has from block number `block` on.
    #[inline]
    pub fn fill(&self, identity: u64, block: u64, buffer: &mut [u8]) {
        self.fill_with(identity, block, buffer, BLOCK, |word| word);
    }

    /// The same with letters: 64 signs of ASCII from `0` to `o`.
    pub fn fill_text(&self, identity: u64, block: u64, buffer: &mut [u8], of_each: usize) {
        let letters = |word: u64| (word & 0x3f3f_3f3f_3f3f_3f3f) + 0x3030_3030_3030_3030;
        self.fill_with(identity, block, buffer, of_each, letters);
    }

    /// Fills the first `of_each` bytes of each block, and leaves the others as they are.
    #[inline]
    pub fn fill_with(
        &self,
        identity: u64,
        block: u64,
        buffer: &mut [u8],
        of_each: usize,
        map: impl Fn(u64) -> u64,
    ) {
        let file = mix(self.seed ^ mix(identity));
        for (piece, number) in buffer.chunks_mut(BLOCK).zip(block..) {
            let key = mix(file ^ mix(number));
            let start = usize::try_from(mix(key) % STARTS as u64).unwrap_or(0);
            let length = of_each.min(piece.len());
            let words = &self.pool[start..start + BLOCK / WORD];
            let (whole, rest) = piece[..length].split_at_mut(length - length % WORD);
            for (bytes, word) in whole.chunks_exact_mut(WORD).zip(words) {
                bytes.copy_from_slice(&map(word ^ key).to_le_bytes());
            }
            let last = words.get(whole.len() / WORD).copied().unwrap_or(0);
            rest.copy_from_slice(&map(last ^ key).to_le_bytes()[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_blocks_are_alike_not_even_a_part_of_one() {
        let contents = Contents::new(1);
        let mut parts = HashSet::new();
        let mut buffer = vec![0; 64 * BLOCK];
        for file in 0..200 {
            contents.fill(file, 0, &mut buffer);
            // Sixteen bytes at each word: what a compressor that looks back looks for.
            for at in (0..buffer.len() - 16).step_by(512) {
                assert!(parts.insert(<[u8; 16]>::try_from(&buffer[at..at + 16]).unwrap()), "{file} {at}");
            }
        }
    }

    #[test]
    fn a_block_is_the_same_however_the_file_is_cut() {
        let contents = Contents::new(7);
        let (mut whole, mut part) = (vec![0; 10 * BLOCK + 77], vec![0; 2 * BLOCK + 77]);
        contents.fill(3, 0, &mut whole);
        contents.fill(3, 8, &mut part);
        assert_eq!(whole[8 * BLOCK..], part);
        let mut other = vec![0; BLOCK];
        Contents::new(8).fill(3, 0, &mut other);
        assert_ne!(whole[..BLOCK], other);
    }

    #[test]
    fn all_bytes_are_about_equally_many_and_letters_are_letters() {
        let (contents, mut counts) = (Contents::new(2), [0_u32; 256]);
        let mut buffer = vec![0; 256 * BLOCK];
        contents.fill(5, 0, &mut buffer);
        for &byte in &buffer {
            counts[usize::from(byte)] += 1;
        }
        // 4096 of each on average; the standard deviation is 64.
        assert!(counts.iter().all(|count| (3700..4500).contains(count)), "{counts:?}");
        buffer.fill(b'~');
        contents.fill_text(5, 0, &mut buffer, 100);
        let filled = |(at, byte): (usize, &u8)| (at % BLOCK < 100) == (b'0'..=b'o').contains(byte);
        assert!(buffer.iter().enumerate().all(filled));
    }
}
