//! The options that every measured command has.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fslab_engine::measure::{Detail, Measure};
use fslab_engine::walk::Order;

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

/// A tree that is walked.
#[derive(Debug, Clone, Args)]
pub(crate) struct Walked {
    /// The directory at the top
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Which directory comes next: the one found last (depth) or first (breadth)
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = WalkOrder::Depth)]
    order: WalkOrder,

    /// Leave out directories on other file systems
    #[arg(long, short = 'x')]
    pub(crate) one_file_system: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WalkOrder {
    Depth,
    Breadth,
}

impl From<WalkOrder> for Order {
    fn from(typed: WalkOrder) -> Self {
        match typed {
            WalkOrder::Depth => Self::Depth,
            WalkOrder::Breadth => Self::Breadth,
        }
    }
}

impl Walked {
    pub(crate) fn order(&self) -> Order {
        self.order.into()
    }
}
