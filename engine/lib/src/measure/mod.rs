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

use self::phase::Phase;
use crate::document::Bandwidth;
use crate::error::Result;

/// Level of detail of latency recording. `Operation` costs one clock reading per operation, `Syscalls` one per system
/// call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, Copy, Default, Serialize, clap::Args)]
pub struct Measure {
    /// Latency to record; more detail costs more readings of the clock.
    #[arg(long, value_enum, value_name = "DETAIL", default_value_t)]
    pub latency: Detail,
    /// Record a time series: count operations per interval of this length, such as 100ms; default: none.
    #[arg(long = "interval", value_name = "TIME", value_parser = crate::units::parse_duration_ns)]
    pub interval_ns: Option<u64>,
}

/// Threads and measurement options.
#[derive(Debug, Clone, Copy, Serialize, clap::Args)]
pub struct Measured {
    /// Number of threads, which start at the same moment.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number_of_threads())]
    pub threads: usize,
    /// Measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measure: Measure,
}

/// The maximum is Linux's limit of tasks (proc(5), `/proc/sys/kernel/pid_max`). A list of that many fits in memory.
fn number_of_threads() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(0..=1 << 22)
}

impl Measured {
    /// Create a phase. Returns an error of the kind `invalid` if `threads` is 0.
    pub fn phase(&self, name: &'static str, bandwidth: Bandwidth) -> Result<Phase<'_>> {
        Phase::new(name, self.threads, &self.measure, bandwidth)
    }
}
