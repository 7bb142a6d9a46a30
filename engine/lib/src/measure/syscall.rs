//! Classes of system calls, and the summary of each.

use serde::Serialize;

use super::histogram::{Latencies, Summary};

/// Classes of system calls whose latencies are recorded separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each is the system call of its name")]
pub enum Syscall {
    Open,
    Read,
    Write,
    Close,
    Stat,
    Unlink,
    Fsync,
    Readdir,
    Mkdir,
    Rmdir,
    Rename,
    Link,
    Symlink,
    Chmod,
    Truncate,
    Utime,
    Copy,
}

impl Syscall {
    /// All classes, in the order of their discriminants.
    pub const ALL: [Self; 17] = [
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Close,
        Self::Stat,
        Self::Unlink,
        Self::Fsync,
        Self::Readdir,
        Self::Mkdir,
        Self::Rmdir,
        Self::Rename,
        Self::Link,
        Self::Symlink,
        Self::Chmod,
        Self::Truncate,
        Self::Utime,
        Self::Copy,
    ];
}

/// Number and latency of the system calls of one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SyscallSummary {
    /// Number of calls.
    pub count: u64,
    /// Latency in nanoseconds.
    #[serde(flatten)]
    pub latency_ns: Summary,
}

impl SyscallSummary {
    /// Summarize the latencies of one class; `None` if there are none.
    pub fn of(latencies: &mut Latencies) -> Option<Self> {
        Some(Self { count: latencies.count(), latency_ns: latencies.summary()? })
    }
}
