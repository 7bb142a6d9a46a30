//! Command-line options.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fslab_disk_model::drive::Cache;
use fslab_disk_model::profile;

use crate::{calibrate, clean, serve, states};

/// Serves a modelled disk as a file for a loop device.
///
/// Sizes are in bytes, without suffixes. Exit status: 0 success; 1 failure; 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "fslab-disk", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Mount a file system on DIRECTORY with one file, 'disk', and serve it until stopped
    Serve(Serve),
    /// Abort the server of DIRECTORY, unmount and detach everything on its disk, and remove DIRECTORY
    Clean {
        /// Directory given to 'serve'
        directory: PathBuf,
    },
    /// Print all profiles with their figures and sources, as JSON
    List,
    /// Measure reads of PATH for a server; prints JSON
    #[command(hide = true)]
    RoundTrip {
        /// Disk of the server, or a block device on it
        path: PathBuf,
    },
    /// Create images of states that a power cut may leave; reads one JSON request per line from standard
    /// input
    States {
        /// Log file given to 'serve' with --log; it needs --log-data too
        log: PathBuf,
        /// Image of the disk when the log started, from the request 'snapshot'
        #[arg(long)]
        base: PathBuf,
    },
}

/// The disk, and how it is served. Sizes are in bytes.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct Serve {
    /// Mount point; if it does not exist, it is created, and removed at the end
    pub(crate) directory: PathBuf,
    /// Mount nothing: only guests get the disk, by the request 'offer'. Any user may do that
    #[arg(long)]
    pub(crate) unmounted: bool,
    /// Size of the disk in bytes, a multiple of 4096
    #[arg(long)]
    pub(crate) size: u64,
    /// Stripe so many drives of the profile into this disk; each has an equal part of the size, and its own seed: SEED,
    /// SEED + 1, …
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) drives: u8,
    /// Size of a stripe's chunk in bytes, a multiple of 4096
    #[arg(long, default_value_t = 65536)]
    pub(crate) chunk: u64,
    /// Maximum memory for its contents in bytes; when it is full, writes fail with ENOSPC; default: SIZE
    #[arg(long)]
    pub(crate) memory: Option<u64>,
    /// Path of the control socket, which is created, and removed at the end
    #[arg(long)]
    pub(crate) control: PathBuf,
    /// Model of the disk, from 'fslab-disk list'; default: no model, requests take no extra time
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Start with an SSD in steady state: filled, then overwritten twice at random
    #[arg(long, requires = "profile")]
    pub(crate) steady: bool,
    /// Write cache; default: that of the profile
    #[arg(long)]
    pub(crate) cache: Option<CacheKind>,
    /// Size of a volatile or protected write cache in bytes; default: that of the profile
    #[arg(long)]
    pub(crate) cache_bytes: Option<u64>,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Factor by which the model runs faster than real time
    #[arg(long, default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// Without a model: use one thread and deadlines nevertheless, so that requests can be delayed
    #[arg(long)]
    pub(crate) timed: bool,
    /// Without a model: number of threads that serve requests
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) threads: u8,
    /// Log every request to this new file
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// Also log the data of writes, in LOG.data
    #[arg(long, requires = "log")]
    pub(crate) log_data: bool,
    /// Maximum size of LOG and LOG.data together in bytes; a log that would be larger is incomplete
    #[arg(long, requires = "log", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) log_limit: u64,
    /// Stop when the other end of this inherited file descriptor is closed
    #[arg(long, value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) lifeline: Option<i32>,
    /// Stop when the parent process ends
    #[arg(long)]
    pub(crate) die_with_parent: bool,
    /// Fail if this machine is too slow to serve the model in real time
    #[arg(long)]
    pub(crate) strict: bool,
}

/// The write cache, as a command-line value.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CacheKind {
    /// Lost in a power cut
    Volatile,
    /// Writes complete when they are on the medium
    None,
    /// Survives a power cut
    Protected,
}

impl From<CacheKind> for Cache {
    fn from(kind: CacheKind) -> Self {
        match kind {
            CacheKind::Volatile => Self::Volatile,
            CacheKind::None => Self::None,
            CacheKind::Protected => Self::Protected,
        }
    }
}

impl Arguments {
    /// Run the command.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            Command::Serve(options) => serve::serve(options),
            Command::List => Ok(writeln!(std::io::stdout(), "{:#}", profile::list())?),
            Command::Clean { directory } => clean::clean(directory),
            Command::RoundTrip { path } => calibrate::measure(path),
            Command::States { log, base } => states::states(log, base),
        }
    }
}
