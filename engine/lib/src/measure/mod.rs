//! Measuring: the clock, histograms, CPU time, and phases in which all workers start together.

pub mod clock;
pub mod cpu;
mod gate;
pub mod histogram;
pub mod intervals;
pub mod phase;
pub mod recorder;
pub mod share;
pub mod syscall;
pub mod whole;

use serde::Serialize;

/// How much of the latency is recorded. Each step costs one more reading of the clock per call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Detail {
    /// None: only counts and the time of the whole phase.
    Off,
    /// Each operation as a whole.
    Operation,
    /// Each operation, and each class of system call in it.
    #[default]
    Syscalls,
}

/// What to measure.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Measure {
    /// How much of the latency is recorded.
    pub latency: Detail,
    /// The length of one interval of the time series, in nanoseconds.
    pub interval_ns: Option<u64>,
}
