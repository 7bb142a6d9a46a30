//! The `fslab-engine` binary: parse the command line, run the command, and print the result as a table or as JSON.

mod commands;
mod signals;
mod table;
mod units;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use fslab_engine::document::Failure;
use fslab_engine::{Error, plain, stop, sys};

use crate::commands::Command;

/// Measure file-management work on any directory: many small files, walking, searching, copying,
/// deleting; with threads, latency percentiles and CPU time.
#[derive(Debug, Parser)]
#[command(name = "fslab-engine", version, max_term_width = 100, after_long_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Write one JSON document to standard output instead of a table
    ///
    /// engine/PROTOCOL.md explains the keys. A failure is a document too, with the key "error".
    #[arg(long, global = true)]
    json: bool,
}

const AFTER_HELP: &str = "\
Sizes take the suffixes k, m, g and t (powers of 1024), times ms, s and m (minutes).

Exit status: 0 success; 1 failure; 2 wrong usage; 130, 143 or 129 stopped by SIGINT,
SIGTERM or SIGHUP.

Example: ten thousand files of 4 KiB, each step with cold caches:
  fslab-engine small-files /mnt --operations create
  sync; echo 3 > /proc/sys/vm/drop_caches
  fslab-engine small-files /mnt --operations stat,read,delete";

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let Some(said) = plain::refusal(&error) else { error.exit() };
            eprint!("{said}");
            return ExitCode::from(2);
        }
    };
    signals::install();
    sys::raise_descriptor_limit();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, arguments.json),
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let document = arguments.command.run()?;
    let text = if arguments.json { document.to_json()? } else { document.to_table() };
    let text = if arguments.json { plain::json(&text) } else { plain::text(&text) };
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(())
}

fn fail(error: &anyhow::Error, json: bool) -> ExitCode {
    eprintln!("fslab-engine: {}", plain::text(&format!("{error:#}")));
    let known = error.downcast_ref::<Error>();
    let failure = known.map_or_else(|| Failure::from(&Error::Invalid(format!("{error:#}"))), Failure::from);
    if json {
        match serde_json::to_string_pretty(&failure) {
            Ok(text) => {
                let _ = writeln!(std::io::stdout(), "{}", plain::json(&text)); // if it fails, the exit status remains
            }
            Err(error) => eprintln!("fslab-engine: cannot write the failure as JSON: {error}"),
        }
    }
    let code = match known {
        Some(Error::Interrupted(signal)) => 128 + signal,
        _ => stop::requested().map_or(1, |signal| 128 + signal),
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
