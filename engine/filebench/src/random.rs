//! Random variables: uniform, gamma and tabular distributions (`randvar`) and custom distributions (`cvar`).
//!
//! Gamma values use the method of Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS 26,
//! 2000), normal values that of Box and Muller (1958). The others use inverse transform sampling.
//!
//! The crate `rand_distr` is not used: its releases may draw other numbers from the same seed, and the files of a
//! workload would change. It has neither tables nor the Erlang distribution.

mod sampler;

use fslab_engine::random::Stream;
pub use sampler::{Number, Sampler};

/// A probability distribution with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Uniform from `lower` to `upper`.
    Uniform {
        /// Lower bound.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// Gamma, shifted by `lower`.
    Gamma {
        /// Offset added to all values.
        lower: f64,
        /// Mean, including `lower`.
        mean: f64,
        /// Shape, often called alpha.
        shape: f64,
    },
    /// Rows of (probability, lower bound, upper bound); uniform within each row. The probabilities add up to 1.
    Table(Vec<(f64, f64, f64)>),
    /// Erlang: the sum of `order` exponential values.
    Erlang {
        /// Number of exponential values, often called shape.
        order: u32,
        /// Rate of each exponential value.
        rate: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Lognormal: the exponential function of a normal value.
    Lognormal {
        /// Standard deviation of the logarithm.
        shape: f64,
        /// Mean of the logarithm.
        scale: f64,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sigma: f64,
    },
    /// Triangular.
    Triangular {
        /// Lower bound.
        lower: f64,
        /// Upper bound.
        upper: f64,
        /// Mode, the most probable value.
        mode: f64,
    },
    /// Weibull.
    Weibull {
        /// Shape.
        shape: f64,
        /// Scale.
        scale: f64,
    },
}

/// The source of random numbers (`randsrc`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// The seed of the run (`rand48`): each run with this seed draws the same numbers.
    #[default]
    Seed,
    /// The kernel (`urandom`): each run draws other numbers.
    Kernel,
}

/// A random variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Index of its random stream; each thread has one stream per variable.
    pub number: usize,
    /// Distribution of the values.
    pub shape: Shape,
    /// Minimum; smaller values are set to it.
    pub min: f64,
    /// Maximum; larger values are set to it.
    pub max: f64,
    /// Values are rounded to the nearest multiple of this number; 0 disables rounding.
    pub round: f64,
    /// Seed of the random stream, combined with that of the run.
    pub seed: u64,
    /// Source of the random numbers.
    pub origin: Origin,
}

impl Distribution {
    /// Draw a value. It is clamped first and rounded after that, so it may exceed the bounds by up to half of `round`.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        let value = self.shape.draw(stream).clamp(self.min, self.max);
        if self.round > 0.0 { (value / self.round).round() * self.round } else { value }
    }
}

impl Shape {
    fn draw(&self, stream: &mut Stream) -> f64 {
        match *self {
            Self::Uniform { lower, upper } => lower + stream.unit() * (upper - lower),
            Self::Gamma { lower, mean, shape } => lower + gamma(shape, stream) * (mean - lower) / shape,
            Self::Table(ref rows) => draw_of_table(rows, stream),
            Self::Erlang { order, rate } => (0..order).map(|_| exponential(stream)).sum::<f64>() / rate,
            Self::Exponential { mean } => mean * exponential(stream),
            Self::Lognormal { shape, scale } => (scale + shape * normal(stream)).exp(),
            Self::Normal { mean, sigma } => mean + sigma * normal(stream),
            Self::Triangular { lower, upper, mode } => {
                let (u, width) = (stream.unit(), upper - lower);
                let split = if width > 0.0 { (mode - lower) / width } else { 0.0 };
                if u < split {
                    lower + (u * width * (mode - lower)).sqrt()
                } else {
                    upper - ((1.0 - u) * width * (upper - mode)).sqrt()
                }
            }
            Self::Weibull { shape, scale } => scale * exponential(stream).powf(1.0 / shape),
        }
    }

    /// Return the mean without clamping and rounding. For Weibull, return the scale as an approximation. The depth of a
    /// directory tree depends on this mean.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Uniform { lower, upper } => f64::midpoint(lower, upper),
            Self::Gamma { mean, .. } | Self::Exponential { mean } | Self::Normal { mean, .. } => mean,
            Self::Table(ref rows) => {
                rows.iter().map(|(share, from, to)| share * f64::midpoint(*from, *to)).sum()
            }
            Self::Erlang { order, rate } => f64::from(order) / rate,
            Self::Lognormal { shape, scale } => (scale + shape * shape / 2.0).exp(),
            Self::Triangular { lower, upper, mode } => (lower + upper + mode) / 3.0,
            Self::Weibull { scale, .. } => scale,
        }
    }
}

fn draw_of_table(rows: &[(f64, f64, f64)], stream: &mut Stream) -> f64 {
    let mut left = stream.unit();
    for &(share, from, to) in rows {
        if left < share {
            return from + stream.unit() * (to - from);
        }
        left -= share;
    }
    rows.last().map_or(0.0, |row| row.2)
}

fn exponential(stream: &mut Stream) -> f64 {
    -(1.0 - stream.unit()).ln()
}

fn normal(stream: &mut Stream) -> f64 {
    (2.0 * exponential(stream)).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
}

/// Draw a gamma value with this shape and the scale 1.
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        let power = (1.0 - stream.unit()).powf(1.0 / shape);
        return gamma(shape + 1.0, stream) * power;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(stream);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && exponential(stream) > d * (v - 1.0 - v.ln()) - x * x / 2.0 {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average(shape: Shape) -> f64 {
        let unbounded = (f64::NEG_INFINITY, f64::INFINITY);
        let one = Distribution {
            number: 0,
            shape,
            min: unbounded.0,
            max: unbounded.1,
            round: 0.0,
            seed: 0,
            origin: Origin::Seed,
        };
        let mut stream = Stream::new(1, 1);
        (0..200_000).map(|_| one.draw(&mut stream)).sum::<f64>() / 200_000.0
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.02, "{found} for {expected}");
    }

    #[test]
    fn the_averages_are_those_of_the_textbooks() {
        near(average(Shape::Uniform { lower: 4096.0, upper: 8192.0 }), 6144.0);
        near(average(Shape::Gamma { lower: 0.0, mean: 16384.0, shape: 1.5 }), 16384.0);
        near(average(Shape::Gamma { lower: 1024.0, mean: 5632.0, shape: 0.5 }), 5632.0);
        near(average(Shape::Erlang { order: 3, rate: 0.5 }), 6.0);
        near(average(Shape::Exponential { mean: 7.0 }), 7.0);
        near(average(Shape::Lognormal { shape: 0.5, scale: 2.0 }), (2.0_f64 + 0.125).exp());
        near(average(Shape::Normal { mean: 10.0, sigma: 3.0 }), 10.0);
        near(average(Shape::Triangular { lower: 0.0, upper: 10.0, mode: 5.0 }), 5.0);
        near(average(Shape::Weibull { shape: 1.0, scale: 4.0 }), 4.0); // with shape 1, Weibull is exponential
        // Half of the values are in 0..2 (mean 1), half in 10..20 (mean 15).
        near(average(Shape::Table(vec![(0.5, 0.0, 2.0), (0.5, 10.0, 20.0)])), 8.0);
    }

    #[test]
    fn values_are_clamped_and_rounded() {
        let shape = Shape::Uniform { lower: 0.0, upper: 100.0 };
        let one = Distribution {
            number: 0,
            shape,
            min: 20.0,
            max: 40.0,
            round: 8.0,
            seed: 0,
            origin: Origin::Seed,
        };
        let mut stream = Stream::new(5, 6);
        let mut found: Vec<f64> = (0..1000).map(|_| one.draw(&mut stream)).collect();
        found.sort_by(f64::total_cmp);
        found.dedup();
        assert_eq!(found, [24.0, 32.0, 40.0]); // 20 is rounded to 24: halves are rounded away from zero
    }
}
