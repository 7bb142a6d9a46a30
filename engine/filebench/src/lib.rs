//! The Workload Model Language (WML) of Filebench. A workload file defines filesets, processes, threads and the
//! operations (flowops) of each thread. `docs/filebench.md` lists the differences from Filebench.
//!
//! [`parse`] converts the text to commands, [`compile`] converts the commands to a program in which all names are
//! resolved, and `execute` runs the program. Everything runs in one process; a process of the language is a group of
//! threads.

pub mod ast;
pub mod compile;
pub mod diagnostic;
mod execute;
mod fileset;
pub mod parse;
pub mod personalities;
pub mod program;
pub mod random;
mod report;
mod runtime;
mod scan;
mod schedule;
mod words;

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use compile::{Context, compile};
use diagnostic::Source;
use execute::Execution;
pub use execute::Listener;
pub use fileset::WORK_DIRECTORY;
use fslab_engine::document::{Outcome, path_as_text};
use fslab_engine::error::{Error, Result};
use program::{Program, Step};

/// The parameters of a workload run.
#[derive(Debug, Clone, Default, Serialize, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct Parameters {
    /// Name of the workload, as in messages.
    #[arg(skip)]
    pub script: String,
    /// Text of the workload. The output document contains its digest instead.
    #[serde(rename = "script_blake3", serialize_with = "as_digest")]
    #[arg(skip)]
    pub text: String,
    /// Working directory of the workload. All files are in its subdirectory [`WORK_DIRECTORY`].
    #[serde(serialize_with = "path_as_text")]
    #[arg(skip)]
    pub directory: PathBuf,
    /// Run time; takes precedence over the workload.
    #[arg(long = "run", value_name = "SECONDS", value_parser = parse_seconds)]
    pub run_seconds: Option<f64>,
    /// Set a variable of the workload; takes precedence over the workload; can be repeated.
    #[serde(serialize_with = "as_map")]
    #[arg(long, value_name = "VARIABLE=VALUE", value_parser = parse_setting)]
    pub set: Vec<(String, String)>,
    /// Random seed.
    // Of the threads, except for `randsrc=urandom`. The created files do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Call syncfs at the end, in the measured time.
    #[arg(long)]
    pub syncfs: bool,
    /// Create the files of the workload, and do nothing else.
    #[arg(long)]
    pub create_only: bool,
    /// Use the files of an earlier run with the same variables, without checking them.
    #[arg(long)]
    pub reuse: bool,
    /// Allow the workload to run shell commands.
    #[arg(long)]
    pub allow_system: bool,
}

fn parse_seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err(format!("'{text}' is not a number of seconds above 0")),
    }
}

fn parse_setting(text: &str) -> std::result::Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected VARIABLE=VALUE")?;
    let name = name.trim_start_matches('$');
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(fits) {
        return Err(format!("'{name}' is not a valid variable name"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn as_map<S: serde::Serializer>(set: &[(String, String)], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_map(set.iter().map(|(name, value)| (name, value)))
}

fn as_digest<S: serde::Serializer>(text: &str, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&digest(text))
}

/// Return the BLAKE3 digest of a text in hexadecimal.
pub fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Run a workload. `listener` receives its messages while it runs. Returns the number of threads and the outcome.
///
/// # Errors
/// An error of the kind `invalid` with the errors found in the workload; otherwise the first error of the run.
pub fn run(parameters: &Parameters, listener: Listener<'_>) -> Result<(usize, Outcome)> {
    let program = compiled(parameters)?;
    let directory =
        parameters.directory.canonicalize().map_err(|error| opened(&parameters.directory, &error))?;
    let mut execution = Execution::new(&program, directory, parameters.seed, parameters.syncfs, listener);
    execution.run(parameters.create_only)?;
    let report = execution.report;
    let warnings = program.warnings.iter().cloned().chain(report.warnings.iter().cloned()).collect();
    let answer = Some(report.answer(&program.usage));
    Ok((report.threads, Outcome { operations: report.operations(), answer, warnings }))
}

/// Check a workload without running it. The answer describes its files, threads and run time.
///
/// # Errors
/// An error of the kind `invalid` with the errors found in the workload.
pub fn check(parameters: &Parameters) -> Result<Outcome> {
    let program = compiled(parameters)?;
    let answer = Some(described(&program));
    Ok(Outcome { operations: Vec::new(), answer, warnings: program.warnings })
}

fn opened(directory: &Path, error: &std::io::Error) -> Error {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
    Error::system("open", directory, errno)
}

fn compiled(parameters: &Parameters) -> Result<Program> {
    // Resolve symbolic links, because absolute paths in the workload are compared with this directory.
    let directory = parameters.directory.canonicalize().unwrap_or_else(|_| parameters.directory.clone());
    let source = Source { name: parameters.script.clone(), text: parameters.text.clone() };
    let context = Context {
        directory,
        overrides: parameters.set.iter().cloned().collect(),
        seconds: parameters.run_seconds,
        allow_system: parameters.allow_system,
        reuse: parameters.reuse,
    };
    compile(source, context).map_err(|mistakes| Error::Invalid(mistakes.to_string()))
}

fn described(program: &Program) -> Value {
    let (mut files, mut bytes, mut filesets, mut threads, mut seconds) = (0, 0.0, Vec::new(), 0, 0.0);
    for step in &program.steps {
        match step {
            Step::CreateFiles(specs) => {
                files = specs.iter().map(|spec| spec.entries + spec.leaf_directories).sum();
                bytes = specs.iter().map(|spec| spec.entries as f64 * spec.size.mean()).sum();
                filesets = specs.iter().map(|spec| spec.name.clone()).collect();
            }
            Step::CreateProcesses(model) => threads = threads.max(model.instances()),
            Step::Run(timing) => seconds += timing.seconds.unwrap_or(0.0),
            Step::Sleep(length) => seconds += length,
            _ => {}
        }
    }
    json!({
        "filesets": filesets,
        "files": files,
        "bytes": bytes.round(),
        "threads": threads,
        "seconds": seconds,
        "variables": program.variables,
        "usage": program.usage,
    })
}
