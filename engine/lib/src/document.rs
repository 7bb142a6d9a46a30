//! The protocol: one JSON document per run. `engine/PROTOCOL.md` explains every key, and the golden
//! files beside it are read by this crate's tests and by the Python side's.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::error::{Error, Kind};
use crate::measure::histogram::Summary;
use crate::measure::intervals::Series;
use crate::measure::syscall::{Syscall, SyscallSummary};

/// The version of the protocol. It changes when a key changes its meaning or goes away.
pub const PROTOCOL: u32 = 1;

/// What a command found: the part of the document that depends on the command.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The measurements, in the order of the work.
    pub operations: Vec<Operation>,
    /// The answer to the question that the operation is about, if it has one.
    pub answer: Option<Value>,
    /// What casts doubt on the measurements.
    pub warnings: Vec<Warning>,
}

/// One run, as it is written.
#[derive(Debug, Serialize)]
pub struct Document<P> {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The version of the engine.
    pub engine: &'static str,
    /// The command, as typed.
    pub command: &'static str,
    /// Everything that the work depended on, defaults included.
    pub parameters: P,
    /// What one reading of the clock costs.
    pub clock_overhead_ns: f64,
    /// How many threads worked.
    pub threads: usize,
    /// The measurements, in the order of the work.
    pub operations: Vec<Operation>,
    /// The answer, if the command has one.
    pub answer: Option<Value>,
    /// What casts doubt on the measurements.
    pub warnings: Vec<Warning>,
}

/// The measurements of one operation.
#[derive(Debug, Clone, Serialize)]
pub struct Operation {
    /// What was done.
    pub name: &'static str,
    /// How many times it was done.
    pub count: u64,
    /// How many bytes of files it moved; `None` where it moves none.
    pub bytes: Option<u64>,
    /// How many files vanished or refused.
    pub errors: u64,
    /// From the barrier until everything was done, the final sync included.
    pub seconds: f64,
    /// The final sync alone; `None` without one.
    pub sync_seconds: Option<f64>,
    /// From the barrier until the first thread had no more work.
    pub first_finished_seconds: f64,
    /// From the barrier until the last thread had no more work.
    pub last_finished_seconds: f64,
    /// Operations per second of `seconds`.
    pub rate_per_second: Option<f64>,
    /// Bytes per second of `seconds`.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// CPU time of all threads in user space.
    pub cpu_user_seconds: f64,
    /// CPU time of all threads in the kernel.
    pub cpu_system_seconds: f64,
    /// Latency of the whole operation; `None` where it was not recorded.
    pub latency_ns: Option<Summary>,
    /// Latency by class of system call; `None` where it was not recorded.
    pub syscalls: Option<BTreeMap<Syscall, SyscallSummary>>,
    /// Operations by interval; `None` unless asked for.
    pub series: Option<Series>,
}

/// Whether the bytes of an operation mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bandwidth {
    /// File contents are moved.
    Counted,
    /// Nothing but metadata.
    Meaningless,
}

impl Bandwidth {
    /// `bytes`, if they mean anything.
    pub fn known(self, bytes: u64) -> Option<u64> {
        (self == Self::Counted).then_some(bytes)
    }
}

/// Something that casts doubt on the measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// Which kind, for programmes.
    pub kind: &'static str,
    /// What happened, for people.
    pub message: String,
}

/// A run that failed, as it is written.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The version of the engine.
    pub engine: &'static str,
    /// Why.
    pub error: FailureReason,
}

/// Why a run failed.
#[derive(Debug, Serialize)]
pub struct FailureReason {
    /// The class of the failure.
    pub kind: Kind,
    /// On what, if there is such a thing; bytes that are not UTF-8 are replaced.
    pub path: Option<String>,
    /// For people.
    pub message: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let path = error.path().map(|path| path.to_string_lossy().into_owned());
        let reason = FailureReason { kind: error.kind(), path, message: error.to_string() };
        Self { protocol: PROTOCOL, engine: crate::VERSION, error: reason }
    }
}

/// Writes a path as text; bytes that are not UTF-8 are replaced, where serde would refuse.
pub fn path_as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
