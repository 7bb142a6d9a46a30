//! `fslab-engine iozone`.

use std::path::PathBuf;

use clap::Args;
use fslab_engine::operations::iozone::{Parameters, Test, run};

use super::Shown;
use crate::options::Measured;
use crate::units::{parse_length, parse_size};

/// IOzone's six tests: write, rewrite, read, reread, random read, random write
///
/// Each thread has one file in the directory fslab-iozone inside DIR. What is timed, the order of the records and
/// the kind of data are those of IOzone 3.489. Several sizes and records are a sweep: each file size in all records
/// that are no longer than it.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of IOzone")]
pub(crate) struct Arguments {
    /// Where to work
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Which tests: 0 write, rewrite; 1 read, reread; 2 random read, random write (IOzone's -i)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2",
          value_parser = clap::value_parser!(u8).range(0..=2))]
    tests: Vec<u8>,

    /// How long each thread's file is (-s)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "512k", value_parser = parse_size)]
    size: Vec<u64>,

    /// How much is read or written at once (-r)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4k", value_parser = parse_size)]
    record: Vec<u64>,

    /// Include fsync in the time (-e)
    #[arg(long)]
    flush: bool,

    /// Include close in the time (-c)
    #[arg(long)]
    close: bool,

    /// Bypass the page cache with `O_DIRECT` (-I)
    #[arg(long)]
    direct: bool,

    /// Each write reaches the device: `O_SYNC` (-o)
    #[arg(long)]
    sync: bool,

    /// Leave out rewrite and reread (-+n)
    #[arg(long)]
    no_retest: bool,

    /// Overwrite so much of the processor's cache before each test (-p, -S)
    #[arg(long, value_name = "SIZE", value_parser = parse_length)]
    purge: Option<usize>,

    /// Keep the files, for a later run without the test 0 (-w)
    #[arg(long)]
    keep: bool,

    /// What the order of the random tests depends on
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
            threads: self.measured.threads,
            flush: self.flush,
            close: self.close,
            direct: self.direct,
            sync: self.sync,
            purge_bytes: self.purge.unwrap_or(0),
            keep: self.keep,
            seed: self.seed,
            measure: self.measured.measure(),
        };
        let outcome = run(&parameters)?;
        Shown::new("iozone", parameters.threads, &parameters, outcome)
    }

    /// The tests in IOzone's order, however their numbers are given.
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
