//! Numbers of a workload and the streams that each thread draws them from.

use std::sync::Arc;

use super::{Distribution, Origin};
use fslab_engine::random::{Stream, mix};

/// A number that is the same each time, or drawn anew.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// Always this.
    Fixed(f64),
    /// Drawn each time.
    Random(Arc<Distribution>),
}

impl Number {
    /// The value, where it is always the same.
    pub fn fixed(&self) -> Option<f64> {
        match self {
            Self::Fixed(value) => Some(*value),
            Self::Random(_) => None,
        }
    }

    /// The value, or the mean of all values.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Random(distribution) => distribution.shape.mean(),
        }
    }
}

/// The streams of random numbers of one thread.
#[derive(Debug)]
pub struct Sampler {
    streams: Vec<Stream>,
    /// For offsets and the like, which belong to no variable.
    pub own: Stream,
}

impl Sampler {
    /// The streams for these variables; `thread` makes them unlike those of other threads.
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

    /// The next value of a number.
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

    /// The next value as a whole number that is not negative.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    pub fn whole(&mut self, number: &Number) -> u64 {
        self.draw(number) as u64
    }
}

/// Random bits of the kernel; of the clock, if it has none to give.
fn entropy() -> u64 {
    let mut bytes = [0; 8];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    if read.is_ok() { u64::from_le_bytes(bytes) } else { mix(fslab_engine::measure::clock::now_ns()) }
}
