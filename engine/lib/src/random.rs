//! Deterministic random numbers and bytes: identical on all machines and for any number of threads.
//!
//! splitmix64 (Steele, Lea, Flood 2014) mixes identities into seeds; xoshiro256++ (Blackman, Vigna 2019) generates
//! streams. Neither is cryptographically secure.

/// Mix a number so that consecutive values give unrelated results (the output function of splitmix64).
#[inline]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A stream of random numbers that depends only on its seed and identity.
#[derive(Debug, Clone)]
pub struct Stream([u64; 4]);

impl Stream {
    /// Create the stream number `identity` of `seed`. Different identities give unrelated streams.
    pub fn new(seed: u64, identity: u64) -> Self {
        let base = mix(seed ^ mix(identity));
        Self([mix(base), mix(base ^ 1), mix(base ^ 2), mix(base ^ 3)])
    }

    /// Return the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Return a number in `0..bound` (Lemire's multiplication). The bias is below 2⁻³² for bounds up to 2³².
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(u64::MAX)
    }

    /// Return a number in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fill `buffer` with random bytes, independent of the machine's byte order.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Shuffle `items` in place (Fisher and Yates). The same stream gives the same order.
pub fn shuffle<T>(items: &mut [T], stream: &mut Stream) {
    for upper in (1..items.len()).rev() {
        let chosen = usize::try_from(stream.below(upper as u64 + 1)).unwrap_or(upper);
        items.swap(upper, chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_matches_the_published_splitmix64() {
        // First outputs of splitmix64 from state 1234567 (Vigna's reference program).
        let step = 0x9E37_79B9_7F4A_7C15_u64;
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for (index, value) in (0u64..).zip(expected) {
            assert_eq!(mix(1_234_567_u64.wrapping_add(step.wrapping_mul(index))), value);
        }
    }

    #[test]
    fn below_stays_below_and_reaches_both_ends() {
        let mut stream = Stream::new(1, 2);
        let drawn: Vec<u64> = (0..1000).map(|_| stream.below(7)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&0), Some(&6)));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        shuffle(&mut items, &mut Stream::new(3, 4));
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
