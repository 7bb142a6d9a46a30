//! The options that every measured command has.

use clap::{Args, ValueEnum};
use fslab_engine::measure::{Detail, Measure};

use crate::units::parse_duration_ns;

/// Threads, and what is measured of them.
#[derive(Debug, Clone, Args)]
pub(crate) struct Measured {
    /// How many threads work; all of them start at one barrier
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,

    /// How much latency is recorded: nothing, each operation, or each class of system call too
    #[arg(long, value_enum, value_name = "DETAIL", default_value_t = Latency::Syscalls)]
    latency: Latency,

    /// Count the operations of each interval, such as 100ms, for a time series
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    interval: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Latency {
    Off,
    Operation,
    Syscalls,
}

impl Measured {
    pub(crate) fn measure(&self) -> Measure {
        let latency = match self.latency {
            Latency::Off => Detail::Off,
            Latency::Operation => Detail::Operation,
            Latency::Syscalls => Detail::Syscalls,
        };
        Measure { latency, interval_ns: self.interval }
    }
}
