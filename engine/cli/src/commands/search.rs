//! `fslab-engine search`.

use clap::Args;
use fslab_engine::measure::Measured;
use fslab_engine::operations::search::{Parameters, run};
use fslab_engine::units::parse_length;
use fslab_engine::walk::Walked;

use super::Shown;

/// Find the files that contain a pattern, and count the matching lines
///
/// Every regular file is searched as bytes: binary files are searched too, and no ignore rules apply. The
/// counts are those of `rg --no-unicode -uuu -a -c`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    walked: Walked,

    /// Text to search for
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pattern: String,

    /// The pattern is a regular expression over bytes; ^ and $ are the start and end of a line
    #[arg(long, short = 'E')]
    regex: bool,

    /// Ignore the case of ASCII letters
    #[arg(long, short)]
    ignore_case: bool,

    /// Maximum number of matching files to list
    #[arg(long, value_name = "N", default_value_t = 0)]
    list: usize,

    /// Size of a read, at least 4k
    #[arg(long, value_name = "SIZE", default_value = "256k", value_parser = parse_length)]
    buffer: usize,

    #[command(flatten)]
    measured: Measured,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let parameters = Parameters {
            walked: self.walked.clone(),
            pattern: self.pattern.clone(),
            regex: self.regex,
            ignore_case: self.ignore_case,
            list: self.list,
            buffer_bytes: self.buffer,
            measured: self.measured,
        };
        let outcome = run(&parameters)?;
        Shown::new("search", parameters.measured.threads, &parameters, outcome)
    }
}
