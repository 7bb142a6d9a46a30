//! The protocol: one JSON document per run. `engine/PROTOCOL.md` explains every key. The tests of this crate and those
//! of the Python code read the golden files next to it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::error::{Error, Kind};
use crate::measure::histogram::Summary;
use crate::measure::intervals::Series;
use crate::measure::syscall::{Syscall, SyscallSummary};

/// Protocol version. It changes if a key is removed or changes its meaning.
pub const PROTOCOL: u32 = 1;

/// The result of a command: the part of the document that depends on the command.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Measurements, in the order of execution.
    pub operations: Vec<Operation>,
    /// The answer of the command; `None` if it has none.
    pub answer: Option<Value>,
    /// Conditions that affect the validity of the measurements.
    pub warnings: Vec<Warning>,
}

/// The document of a successful run.
#[derive(Debug, Serialize)]
pub struct Document<P> {
    /// Protocol version: [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the engine.
    pub engine: &'static str,
    /// The command as typed.
    pub command: &'static str,
    /// All parameters that the run depends on, including defaults.
    pub parameters: P,
    /// Time of one clock reading in nanoseconds.
    pub clock_overhead_ns: f64,
    /// Number of worker threads.
    pub threads: usize,
    /// Measurements, in the order of execution.
    pub operations: Vec<Operation>,
    /// The answer of the command; `None` if it has none.
    pub answer: Option<Value>,
    /// Conditions that affect the validity of the measurements.
    pub warnings: Vec<Warning>,
}

/// The measurements of one operation.
#[derive(Debug, Clone, Serialize)]
pub struct Operation {
    /// Name of the operation.
    pub name: &'static str,
    /// Number of completed operations.
    pub count: u64,
    /// Bytes of file contents transferred; `None` if the operation transfers none.
    pub bytes: Option<u64>,
    /// Number of files that disappeared or failed. They are not part of `count`.
    pub errors: u64,
    /// When the barrier opened, in seconds of `CLOCK_MONOTONIC`.
    pub began_seconds: f64,
    /// Time from the barrier until all work is done, including the final sync.
    pub seconds: f64,
    /// Time of the final sync; `None` if there was none.
    pub sync_seconds: Option<f64>,
    /// Time from the barrier until the first thread finished.
    pub first_finished_seconds: f64,
    /// Time from the barrier until the last thread finished.
    pub last_finished_seconds: f64,
    /// `count` divided by `seconds`; `None` if `seconds` is 0.
    pub rate_per_second: Option<f64>,
    /// `bytes` divided by `seconds`; `None` if `bytes` is `None` or `seconds` is 0.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// CPU time of all threads in user space.
    pub cpu_user_seconds: f64,
    /// CPU time of all threads in the kernel.
    pub cpu_system_seconds: f64,
    /// Latency of whole operations; `None` if it was not recorded.
    pub latency_ns: Option<Summary>,
    /// Latency by class of system call; `None` if it was not recorded.
    pub syscalls: Option<BTreeMap<Syscall, SyscallSummary>>,
    /// Number of operations per interval; `None` unless requested.
    pub series: Option<Series>,
}

/// Whether an operation transfers file contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bandwidth {
    /// The operation transfers file contents; its bytes are reported.
    Counted,
    /// The operation accesses metadata only; no bytes are reported.
    Meaningless,
}

impl Bandwidth {
    /// Return `bytes` if they are reported, else `None`.
    pub fn known(self, bytes: u64) -> Option<u64> {
        (self == Self::Counted).then_some(bytes)
    }
}

/// A condition that affects the validity of the measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// Identifier of the warning, for programs.
    pub kind: &'static str,
    /// Description for users.
    pub message: String,
}

/// The document of a failed run.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// Protocol version: [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the engine.
    pub engine: &'static str,
    /// Reason of the failure.
    pub error: FailureReason,
}

/// The reason of a failure.
#[derive(Debug, Serialize)]
pub struct FailureReason {
    /// Class of the failure.
    pub kind: Kind,
    /// Path on which the run failed, if any. Bytes that are not UTF-8 are replaced.
    pub path: Option<String>,
    /// Description for users.
    pub message: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let path = error.path().map(|path| path.to_string_lossy().into_owned());
        let reason = FailureReason { kind: error.kind(), path, message: error.to_string() };
        Self { protocol: PROTOCOL, engine: crate::VERSION, error: reason }
    }
}

/// Serialize a path as text. Bytes that are not UTF-8 are replaced; serde would return an error.
pub fn path_as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
