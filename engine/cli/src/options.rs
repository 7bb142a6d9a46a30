//! Options that several commands share.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use fslab_engine::measure::{Detail, Measure};
use fslab_engine::walk::Order;

use crate::units::parse_duration_ns;

/// Maximum number of threads: the limit of tasks in Linux (proc(5), `/proc/sys/kernel/pid_max`). A list of that many
/// fits in memory.
const MOST_THREADS: u64 = 1 << 22;

fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=MOST_THREADS)
}

/// Options for the threads and the measurement.
#[derive(Debug, Clone, Args)]
pub(crate) struct Measured {
    /// Number of threads, which start at the same moment
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    pub(crate) threads: usize,

    /// Latency to record; more detail costs more readings of the clock
    #[arg(long, value_enum, value_name = "DETAIL", default_value_t = Detail::Syscalls)]
    latency: Detail,

    /// Record a time series: count operations per interval of this length, such as 100ms; default: none
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    interval: Option<u64>,
}

impl Measured {
    pub(crate) fn measure(&self) -> Measure {
        Measure { latency: self.latency, interval_ns: self.interval }
    }
}

/// Options for walking a tree.
#[derive(Debug, Clone, Args)]
pub(crate) struct Walked {
    /// Top directory of the tree
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Which directory is visited next: the one found last (depth) or first (breadth)
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Depth)]
    pub(crate) order: Order,

    /// Skip directories on other file systems
    #[arg(long, short = 'x')]
    pub(crate) one_file_system: bool,
}
