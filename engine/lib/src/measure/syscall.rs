//! The classes of system call, and what is told of each.

use serde::Serialize;

use super::histogram::{Latencies, Summary};

/// The classes of system call that are told apart.
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
    /// All classes, in the order of their numbers.
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

/// How often a class of system call was made, and its latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SyscallSummary {
    /// How often.
    pub count: u64,
    /// Its latency in nanoseconds.
    #[serde(flatten)]
    pub latency_ns: Summary,
}

impl SyscallSummary {
    /// `None` if it was never made.
    pub fn of(latencies: &mut Latencies) -> Option<Self> {
        Some(Self { count: latencies.count(), latency_ns: latencies.summary()? })
    }
}
