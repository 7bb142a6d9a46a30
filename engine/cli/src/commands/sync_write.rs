//! `fslab-engine sync-write`.

use std::path::PathBuf;

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::sync_write::{Method, Parameters, Sync, run};
use fslab_engine::units::parse_length;
use fslab_engine::walk::Order;

use super::Shown;

/// Mirror a tree: create and write every file, set times and permissions
///
/// Symbolic links and hard links are copied as links. Owners are kept if run as root. Extended attributes and
/// devices are not copied. With --method read-write, holes are filled with zeros. A file that cannot be copied
/// completely is removed again and counted as failed.
///
/// What --sync makes durable: `none`: nothing; `file`: the contents of each file (fsync), but not its name;
/// `directory`: contents and names (fsync of each file, and of each directory when it is complete); `syncfs`:
/// everything, at the end.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tree to mirror
    #[arg(value_name = "SRC")]
    source: PathBuf,

    /// New or empty directory; directories that delete refuses are refused here too
    #[arg(value_name = "DST")]
    destination: PathBuf,

    /// Size of a read and write
    #[arg(long, value_name = "SIZE", default_value = "256k", value_parser = parse_length)]
    buffer: usize,

    /// How contents are copied; a method that the file system does not support is an error
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = Method::ReadWrite)]
    method: Method,

    /// How the copy is made durable, in the measured time
    #[arg(long, value_enum, value_name = "SYNC", default_value_t = Sync::Syncfs)]
    sync: Sync,

    /// Which directory is visited next: the one found last (depth) or first (breadth)
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Depth)]
    order: Order,

    /// Skip directories on other file systems
    #[arg(long, short = 'x')]
    one_file_system: bool,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            source: self.source.clone(),
            destination: self.destination.clone(),
            order: self.order,
            one_file_system: self.one_file_system,
            buffer_bytes: self.buffer,
            method: self.method,
            sync: self.sync,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("sync-write", parameters.measured.threads, &parameters, outcome)
    }
}
