//! A set of small numbers that finds its next member quickly: a hierarchy of bitmaps. Each bit of an upper level tells
//! whether the corresponding word of the level below is non-zero.

const BITS: usize = 64;

/// A set of numbers below a bound. Level 0 has one bit per number; the last level is a single word.
#[derive(Debug, Clone)]
pub(super) struct NumberSet {
    levels: Vec<Vec<u64>>,
}

impl NumberSet {
    /// Create an empty set for numbers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        let (mut levels, mut length) = (Vec::new(), bound.max(1));
        loop {
            length = length.div_ceil(BITS);
            levels.push(vec![0; length]);
            if length == 1 {
                return Self { levels };
            }
        }
    }

    pub(super) fn insert(&mut self, number: usize) {
        let mut position = number;
        for level in &mut self.levels {
            let (word, bit) = (position / BITS, 1 << (position % BITS));
            let before = level[word];
            level[word] |= bit;
            if before != 0 {
                return;
            }
            position = word;
        }
    }

    pub(super) fn remove(&mut self, number: usize) {
        let mut position = number;
        for level in &mut self.levels {
            let (word, bit) = (position / BITS, 1_u64 << (position % BITS));
            level[word] &= !bit;
            if level[word] != 0 {
                return;
            }
            position = word;
        }
    }

    /// Return the smallest member that is at least `start`. If there is none, return the smallest member of all. Return
    /// `None` if the set is empty.
    pub(super) fn next_from(&self, start: usize) -> Option<usize> {
        self.at_least(start).or_else(|| self.at_least(0))
    }

    fn at_least(&self, start: usize) -> Option<usize> {
        let mut position = start;
        for depth in 0..self.levels.len() {
            let word = position / BITS;
            let found = self.levels[depth].get(word)? & (u64::MAX << (position % BITS));
            if found != 0 {
                return Some(self.descend(depth, word * BITS + found.trailing_zeros() as usize));
            }
            // No member in the rest of this word: search the level above for the next non-zero word.
            position = word + 1;
        }
        None
    }

    fn descend(&self, depth: usize, position: usize) -> usize {
        let below = self.levels[..depth].iter().rev();
        below.fold(position, |position, level| position * BITS + level[position].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use fslab_engine::random::Stream;

    #[test]
    fn it_agrees_with_a_tree() {
        for bound in [1, 63, 64, 65, 5000, 300_000] {
            let (mut set, mut tree) = (NumberSet::new(bound), BTreeSet::new());
            let mut stream = Stream::new(1, bound as u64);
            for _ in 0..4000 {
                let number = usize::try_from(stream.below(bound as u64)).unwrap();
                if stream.below(3) == 0 {
                    set.remove(number);
                    tree.remove(&number);
                } else {
                    set.insert(number);
                    tree.insert(number);
                }
                let start = usize::try_from(stream.below(bound as u64)).unwrap();
                let expected = tree.range(start..).next().or_else(|| tree.first()).copied();
                assert_eq!(set.next_from(start), expected);
            }
        }
    }
}
