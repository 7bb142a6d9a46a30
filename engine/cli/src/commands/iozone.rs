//! `fslab-engine iozone`.

use std::path::PathBuf;

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::iozone::{Parameters, Test, run};
use fslab_engine::units::{parse_length, parse_size};

use super::Shown;

/// IOzone's six tests: write, rewrite, read, reread, random read, random write
///
/// Each thread has one file in the directory fslab-iozone inside DIR. The measured system calls, the order of records
/// and the kind of data are those of IOzone 3.489. Several sizes and records are a sweep: each file size with each
/// record length that is not larger.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of IOzone")]
pub(crate) struct Arguments {
    /// Existing directory to work in
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Tests to run: 0 write, rewrite; 1 read, reread; 2 random read, random write (IOzone's -i)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2",
          value_parser = clap::value_parser!(u8).range(0..=2))]
    tests: Vec<u8>,

    /// Size of each thread's file; several for a sweep (-s)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "512k", value_parser = parse_size)]
    size: Vec<u64>,

    /// Record length: size of a read or write; several for a sweep (-r)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4k", value_parser = parse_size)]
    record: Vec<u64>,

    /// Include fsync in the measured time (-e)
    #[arg(long)]
    flush: bool,

    /// Include close in the measured time (-c)
    #[arg(long)]
    close: bool,

    /// Bypass the page cache with `O_DIRECT` (-I)
    #[arg(long)]
    direct: bool,

    /// Each write reaches the device: `O_SYNC` (-o)
    #[arg(long)]
    sync: bool,

    /// Skip rewrite and reread (-+n)
    #[arg(long)]
    no_retest: bool,

    /// Purge a CPU cache of this size before each test; default: no purge (-p, -S)
    #[arg(long, value_name = "SIZE", value_parser = parse_length)]
    purge: Option<usize>,

    /// Repeat the tests up to N times, each time with files of their own; the bandwidth is that of all rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Stop repeating once each test has taken so many seconds in total; default: all rounds
    #[arg(long, value_name = "SECONDS", requires = "rounds")]
    enough: Option<f64>,

    /// Keep the files, for a later run without test 0 (-w)
    #[arg(long)]
    keep: bool,

    /// Random seed of the order of the random tests
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            directory: self.directory.clone(),
            tests: self.tests(),
            sizes_bytes: self.size.clone(),
            records_bytes: self.record.clone(),
            rounds: self.rounds,
            enough_seconds: self.enough,
            flush: self.flush,
            close: self.close,
            direct: self.direct,
            sync: self.sync,
            purge_bytes: self.purge.unwrap_or(0),
            keep: self.keep,
            seed: self.seed,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("iozone", parameters.measured.threads, &parameters, outcome)
    }

    /// Return the tests in IOzone's order, each once, in whatever order their numbers are given.
    fn tests(&self) -> Vec<Test> {
        let of = |number| match number {
            0 if self.no_retest => vec![Test::Write],
            0 => vec![Test::Write, Test::Rewrite],
            1 if self.no_retest => vec![Test::Read],
            1 => vec![Test::Read, Test::Reread],
            _ => vec![Test::RandomRead, Test::RandomWrite],
        };
        (0..=2).filter(|number| self.tests.contains(number)).flat_map(of).collect()
    }
}
