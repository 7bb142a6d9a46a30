//! Measurement: clock, histograms, CPU time, and phases whose workers start together.

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

/// Level of detail of latency recording. `Operation` costs one clock reading per operation, `Syscalls` one per system
/// call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Detail {
    /// No latency: only counts and the duration of the phase.
    Off,
    /// Latency of each operation as a whole.
    Operation,
    /// Latency of each operation, and of each class of system call in it.
    #[default]
    Syscalls,
}

/// Measurement options.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Measure {
    /// Level of detail of latency recording.
    pub latency: Detail,
    /// Interval length of the time series in nanoseconds; `None` for no series.
    pub interval_ns: Option<u64>,
}
