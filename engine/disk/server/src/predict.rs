//! `fslab-disk predict` runs a model under a steady load in virtual time, which is much faster than real time.

use std::io::Write;

use anyhow::bail;
use clap::{Args, ValueEnum};
use fslab_disk_model::drive::Op;
use fslab_disk_model::log::LARGEST_DISK;
use fslab_disk_model::predict::{self, Load};
use fslab_disk_model::profile::{self, Setup};
use fslab_disk_model::ssd::Collection;
use serde_json::json;

/// The disk and the load. Sizes are in bytes.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// Model of the disk, from 'fslab-disk list'
    #[arg(long)]
    profile: String,
    /// Size of the disk in bytes
    #[arg(long)]
    size: u64,
    /// Kind of requests
    #[arg(long)]
    op: Direction,
    /// Size of a request in bytes
    #[arg(long)]
    block: u64,
    /// Queue depth: requests in flight
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    depth: u64,
    /// Random offsets; default: sequential
    #[arg(long)]
    random: bool,
    /// First byte of the range of the requests
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// End of the range: the offset after its last byte; default: the end of the disk
    #[arg(long)]
    end: Option<u64>,
    /// Duration in seconds of the modelled drive; the first quarter is not counted
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Think time: nanoseconds between a reply and the host's next request
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=86_400_000_000_000))]
    think: u64,
    /// Start with an SSD in steady state: filled, then overwritten twice at random
    #[arg(long)]
    steady: bool,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Operation of a load.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Direction {
    /// Data from the disk
    Read,
    /// Data to the disk
    Write,
}

/// Print the prediction.
pub(crate) fn predict(options: &Predict) -> anyhow::Result<()> {
    let end = options.end.unwrap_or(options.size);
    if options.size > LARGEST_DISK {
        bail!("size {} is larger than 1 PiB", options.size);
    }
    if let Some(why) = profile::refuses(&options.profile, options.size) {
        bail!(why);
    }
    let last = options.start.checked_add(options.block);
    if options.block == 0
        || options.block % 512 != 0
        || end > options.size
        || last.is_none_or(|last| last > end)
    {
        bail!(
            "--block {} must be a multiple of 512 bytes that fits between --start {} and {end}, within the disk of {} bytes",
            options.block,
            options.start,
            options.size
        );
    }
    let (bytes, seed) = (options.size, options.seed);
    let collection = Collection::Greedy;
    let setup = Setup { bytes, cache: None, cache_bytes: None, seed, collection, steady: options.steady };
    let Some(mut built) = profile::build(Some(&options.profile), &setup) else {
        bail!("unknown profile '{}'", options.profile);
    };
    let load = Load {
        op: match options.op {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        },
        block: options.block,
        depth: options.depth,
        random: options.random,
        start: options.start,
        end,
        time: options.seconds * 1_000_000_000,
        think: options.think,
        seed,
    };
    let found = predict::predict(&mut *built.drive, &load);
    let answer = json!({
        "rate": found.rate,
        "mb_s": found.rate * options.block as f64 / 1e6,
        "p50": found.quantile(50),
        "p99": found.quantile(99),
        "model": built.drive.report(),
    });
    Ok(writeln!(std::io::stdout(), "{answer}")?)
}
