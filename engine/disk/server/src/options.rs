//! What was typed.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fslab_disk_model::drive::Cache;
use fslab_disk_model::profile;
use fslab_disk_model::ssd::Collection;

use crate::export::{self, Format};
use crate::predict::{self, Predict};
use crate::{clean, serve, states};

/// Serves a modelled disk as a file for a loop device.
#[derive(Debug, Parser)]
#[command(name = "fslab-disk", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Mount DIRECTORY with one file, disk, and serve it until told to stop
    Serve(Serve),
    /// Abort what serves DIRECTORY, unmount and detach what lies on its disk, and remove it
    Clean {
        /// The directory given to serve
        directory: PathBuf,
    },
    /// Print all profiles with their figures and sources, as JSON
    List,
    /// Say what a model does under a steady load, without serving it; as JSON
    Predict(Predict),
    /// Convert a log
    Export {
        /// The file given with --log
        log: PathBuf,
        /// New file
        output: PathBuf,
        /// Its format
        #[arg(long)]
        format: Format,
    },
    /// Make images of what the disk may hold after a power cut: a JSON request a line on standard input
    States {
        /// The file given with --log; needs --log-data
        log: PathBuf,
        /// The disk as it was when the log began, as a snapshot
        #[arg(long)]
        base: PathBuf,
    },
}

/// How the disk is, and how it is served. Sizes are in bytes.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct Serve {
    /// Directory to mount; made if it does not exist, and removed at the end if it was made
    pub(crate) directory: PathBuf,
    /// Size of the disk, a multiple of 4096
    #[arg(long)]
    pub(crate) size: u64,
    /// Most bytes of memory for its contents; writes beyond fail with ENOSPC
    #[arg(long, conflicts_with = "file")]
    pub(crate) memory: Option<u64>,
    /// New sparse file for its contents, instead of memory
    #[arg(long)]
    pub(crate) file: Option<PathBuf>,
    /// Socket for control; removed at the end
    #[arg(long)]
    pub(crate) control: PathBuf,
    /// Model: a name that 'fslab-disk list' prints; without one requests are answered at once
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// How an SSD collects garbage
    #[arg(long, default_value = "greedy")]
    pub(crate) collection: CollectionKind,
    /// Start with an SSD that was filled, and written twice over at random
    #[arg(long, requires = "profile")]
    pub(crate) steady: bool,
    /// Write cache: as the profile has it if not given
    #[arg(long)]
    pub(crate) cache: Option<CacheKind>,
    /// Size of a volatile or protected write cache: as the profile has it if not given
    #[arg(long)]
    pub(crate) cache_bytes: Option<u64>,
    /// Of everything random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Run the model this many times faster
    #[arg(long, default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// Without a model: serve with one thread and deadlines all the same
    #[arg(long)]
    pub(crate) timed: bool,
    /// Without a model: number of serving threads
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) threads: u8,
    /// Log every request to this new file
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// Keep the data of writes, in LOG.data
    #[arg(long, requires = "log")]
    pub(crate) log_data: bool,
    /// End when this inherited descriptor is closed at its other end
    #[arg(long, value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) lifeline: Option<i32>,
    /// End when the parent ends
    #[arg(long)]
    pub(crate) die_with_parent: bool,
    /// Fail if this machine cannot serve the model in its time
    #[arg(long)]
    pub(crate) strict: bool,
}

/// The write cache as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CacheKind {
    /// A power cut empties it
    Volatile,
    /// Writes are done when they are on the medium
    None,
    /// A power cut spares it
    Protected,
}

/// Garbage collection as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CollectionKind {
    /// The block with the fewest valid pages
    Greedy,
    /// The block with the most free space times age for its copying
    CostBenefit,
}

impl From<CollectionKind> for Collection {
    fn from(kind: CollectionKind) -> Self {
        match kind {
            CollectionKind::Greedy => Self::Greedy,
            CollectionKind::CostBenefit => Self::CostBenefit,
        }
    }
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
    /// Does what was asked.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            Command::Serve(options) => serve::serve(options),
            Command::List => Ok(writeln!(std::io::stdout(), "{:#}", profile::list())?),
            Command::Clean { directory } => clean::clean(directory),
            Command::Predict(options) => predict::predict(options),
            Command::Export { log, output, format } => export::export(log, *format, output),
            Command::States { log, base } => states::states(log, base),
        }
    }
}
