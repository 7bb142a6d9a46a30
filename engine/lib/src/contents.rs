//! File contents that cannot be compressed or deduplicated: random bytes that depend on seed, file and block.
//!
//! Each block is a slice of a small pool of random words, combined by exclusive or with a random word of its own. No
//! two blocks are equal, and a compressor finds no repetition between blocks, however large its window is. Generating a
//! block takes a fraction of the time of writing it, so contents can be generated while files are written.

use crate::random::{Stream, mix};

/// Block size in bytes. File systems deduplicate in units of this size or a multiple of it.
pub const BLOCK: usize = 4096;
const WORD: usize = 8;
/// Number of offsets in the pool at which a block may start. With this number the pool fits into the L2 cache.
const STARTS: usize = 8192;

/// A generator of file contents.
#[derive(Debug)]
pub struct Contents {
    pool: Vec<u64>,
    seed: u64,
}

impl Contents {
    /// Create a generator. The same seed produces the same contents.
    pub fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, 1 << 59);
        Self { pool: (0..STARTS + BLOCK / WORD).map(|_| stream.next_u64()).collect(), seed }
    }

    /// Fill `buffer` with the contents of the file `identity`, starting at block number `block`.
    #[inline]
    pub fn fill(&self, identity: u64, block: u64, buffer: &mut [u8]) {
        self.fill_with(identity, block, buffer, BLOCK, |word| word);
    }

    /// Fill the first `of_each` bytes of each block with text: 64 ASCII characters from `0` to `o`.
    pub fn fill_text(&self, identity: u64, block: u64, buffer: &mut [u8], of_each: usize) {
        let letters = |word: u64| (word & 0x3f3f_3f3f_3f3f_3f3f) + 0x3030_3030_3030_3030;
        self.fill_with(identity, block, buffer, of_each, letters);
    }

    /// Fill the first `of_each` bytes of each block with random words passed through `map`. The other bytes stay
    /// unchanged.
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
            // Compare 16 bytes out of every 512, because a compressor looks for repeated sequences of such a length.
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
        // The expected count is 4096 with a standard deviation of 64.
        assert!(counts.iter().all(|count| (3700..4500).contains(count)), "{counts:?}");
        buffer.fill(b'~');
        contents.fill_text(5, 0, &mut buffer, 100);
        let filled = |(at, byte): (usize, &u8)| (at % BLOCK < 100) == (b'0'..=b'o').contains(byte);
        assert!(buffer.iter().enumerate().all(filled));
    }
}
