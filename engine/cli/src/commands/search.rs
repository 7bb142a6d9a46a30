//! `fslab-engine search`.

use clap::Args;
use fslab_engine::operations::search::{Parameters, run};

use super::Shown;
use crate::options::{Measured, Walked};
use crate::units::parse_length;

/// Find the files whose contents hold a pattern, and count the lines that do
///
/// Every regular file is searched as bytes: nothing is taken for binary, and no ignore rules apply. The
/// count is that of `rg --no-unicode -uuu -a -c`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    walked: Walked,

    /// What to look for
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pattern: String,

    /// The pattern is a regular expression over bytes; ^ and $ are the ends of a line
    #[arg(long, short = 'E')]
    regex: bool,

    /// Take upper and lower case of ASCII letters for the same
    #[arg(long, short)]
    ignore_case: bool,

    /// List up to this many of the files found
    #[arg(long, value_name = "N", default_value_t = 0)]
    list: usize,

    /// How much is read at once
    #[arg(long, value_name = "SIZE", default_value = "256k", value_parser = parse_length)]
    buffer: usize,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            directory: self.walked.directory.clone(),
            pattern: self.pattern.clone(),
            regex: self.regex,
            ignore_case: self.ignore_case,
            list: self.list,
            buffer_bytes: self.buffer,
            threads: self.measured.threads,
            order: self.walked.order,
            one_file_system: self.walked.one_file_system,
            measure: self.measured.measure(),
        };
        let outcome = run(&parameters)?;
        Shown::new("search", parameters.threads, &parameters, outcome)
    }
}
