//! Fixed and random numbers of a workload, and the random streams of each thread.

use std::sync::Arc;

use super::{Distribution, Origin};
use fslab_engine::random::{Stream, mix};

/// A fixed number or a random variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// A fixed number.
    Fixed(f64),
    /// A random variable; each use draws a new value.
    Random(Arc<Distribution>),
}

impl Number {
    /// Return the value of a fixed number; `None` for a random variable.
    pub fn fixed(&self) -> Option<f64> {
        match self {
            Self::Fixed(value) => Some(*value),
            Self::Random(_) => None,
        }
    }

    /// Return the value of a fixed number, or the mean of a random variable.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Random(distribution) => distribution.shape.mean(),
        }
    }
}

/// The random streams of one thread.
#[derive(Debug)]
pub struct Sampler {
    streams: Vec<Stream>,
    /// Stream for numbers that belong to no variable, such as random offsets.
    pub own: Stream,
}

impl Sampler {
    /// Create one stream for each variable. Each number of `thread` gives different streams.
    pub fn new(distributions: &[Arc<Distribution>], seed: u64, thread: u64) -> Self {
        let stream = |one: &Arc<Distribution>| {
            let base = match one.origin {
                Origin::Seed => seed ^ mix(one.seed ^ mix(one.number as u64)),
                Origin::Kernel => entropy(),
            };
            Stream::new(base, thread)
        };
        let streams = distributions.iter().map(stream).collect();
        Self { streams, own: Stream::new(mix(seed), thread) }
    }

    /// Return the value of a fixed number, or draw the next value of a random variable.
    #[inline]
    pub fn draw(&mut self, number: &Number) -> f64 {
        match number {
            Number::Fixed(value) => *value,
            Number::Random(one) => match self.streams.get_mut(one.number) {
                Some(stream) => one.draw(stream),
                None => one.draw(&mut self.own),
            },
        }
    }

    /// Return the next value truncated to an integer; 0 if it is negative.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    pub fn whole(&mut self, number: &Number) -> u64 {
        self.draw(number) as u64
    }
}

/// Return 64 random bits from `/dev/urandom`; derived from the clock if it cannot be read.
fn entropy() -> u64 {
    let mut bytes = [0; 8];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    if read.is_ok() { u64::from_le_bytes(bytes) } else { mix(fslab_engine::measure::clock::now_ns()) }
}
