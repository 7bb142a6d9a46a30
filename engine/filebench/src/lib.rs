//! The Workload Model Language: files that say which processes with which threads do what to which files,
//! as Filebench reads them. `docs/filebench.md` tells what is different here.
//!
//! [`parse`] makes commands of the text, [`compile`] a programme of the commands, in which nothing is left
//! to be looked up, and `execute` runs it. Everything happens in one process; what the language calls
//! processes are groups of threads.

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

use std::collections::BTreeMap;
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

/// What is to be done.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Parameters {
    /// How the workload is called.
    pub script: String,
    /// Its text; the document has the digest.
    #[serde(rename = "script_blake3", serialize_with = "as_digest")]
    pub text: String,
    /// Where its files lie, whatever paths it names.
    #[serde(serialize_with = "path_as_text")]
    pub directory: PathBuf,
    /// Variables that win over those of the workload.
    pub set: BTreeMap<String, String>,
    /// The run time that wins over that of the workload.
    pub run_seconds: Option<f64>,
    /// What all random numbers depend on.
    pub seed: u64,
    /// Whether it may run shell commands.
    pub allow_system: bool,
    /// Whether a run ends with a `syncfs`, within the measured time.
    pub syncfs: bool,
    /// Whether its files are made and nothing else is done.
    pub create_only: bool,
    /// Whether all files of an earlier run are taken, without a look at them.
    pub reuse: bool,
}

fn as_digest<S: serde::Serializer>(text: &str, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&digest(text))
}

/// What tells one workload from another.
pub fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Runs a workload; `listener` hears what it says meanwhile.
///
/// # Errors
/// Of the kind `invalid` with all mistakes of the file; otherwise the first failure on a file.
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

/// Reads a workload without running it: what it would make and start.
///
/// # Errors
/// Of the kind `invalid` with all mistakes of the file.
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
    // Paths of the file are compared with the directory as it really is.
    let directory = parameters.directory.canonicalize().unwrap_or_else(|_| parameters.directory.clone());
    let source = Source { name: parameters.script.clone(), text: parameters.text.clone() };
    let context = Context {
        directory,
        overrides: parameters.set.clone().into_iter().collect(),
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
