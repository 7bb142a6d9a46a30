//! `fslab-engine iozone`.

use clap::Args;
use fslab_engine::operations::iozone::{Parameters, Test, run};

use super::Shown;

/// IOzone's six tests: write, rewrite, read, reread, random read, random write
///
/// Each thread has one file in the directory fslab-iozone inside DIR. The measured system calls, the order of records
/// and the kind of data are those of IOzone 3.489. Several sizes and records are a sweep: each file size with each
/// record length that is not larger.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tests to run: 0 write, rewrite; 1 read, reread; 2 random read, random write (IOzone's -i)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2",
          value_parser = clap::value_parser!(u8).range(0..=2))]
    tests: Vec<u8>,

    /// Skip rewrite and reread (-+n)
    #[arg(long)]
    no_retest: bool,

    #[command(flatten)]
    parameters: Parameters,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let it = &Parameters { tests: self.tests(), ..self.parameters.clone() };
        Shown::new("iozone", it.measured.threads, it, run(it)?)
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
