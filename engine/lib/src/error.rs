//! Errors that end an operation as a whole, and their kinds in the protocol.
//!
//! A single file that disappears or cannot be read is not such an error: operations on trees count it and continue.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::Serialize;

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of a failure, as written in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The file system or the quota is full, in blocks or in inodes; or a file system in memory would use too much
    /// memory.
    NoSpace,
    /// Less memory is available than needed.
    NoMemory,
    /// Permission denied, or a read-only file system.
    Permission,
    /// The process or the system has too many open files.
    TooManyFiles,
    /// A file or directory does not exist.
    NotFound,
    /// A file or directory to be created exists already.
    Exists,
    /// A signal requested the stop.
    Interrupted,
    /// A parameter is invalid, or a system call failed with `EINVAL`.
    Invalid,
    /// The size or contents of a file are not as expected.
    Content,
    /// Any other error of a system call.
    Io,
}

impl From<Errno> for Kind {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            Errno::NOMEM => Self::NoMemory,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Permission,
            Errno::MFILE | Errno::NFILE => Self::TooManyFiles,
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::Exists,
            Errno::INVAL => Self::Invalid,
            _ => Self::Io,
        }
    }
}

/// The reason why an operation failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action} {}: {}", path.display(), std::io::Error::from(*errno))]
    System {
        /// The attempted action, as a verb: "create", "open directory".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error number returned by the kernel.
        errno: Errno,
    },
    /// The size or contents of a file are not as expected.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Description of the difference.
        message: String,
    },
    /// The file system, or the memory that holds its files, is too small.
    #[error("not enough space in {}: {message}", path.display())]
    Room {
        /// A directory on the file system.
        path: PathBuf,
        /// Required and available space.
        message: String,
    },
    /// More memory is needed than is available, or an allocation failed.
    #[error("{what} would take {bytes} bytes of memory{}", free.map_or_else(String::new, |free| format!(", but only {free} are free")))]
    Memory {
        /// Purpose of the memory.
        what: String,
        /// Required bytes.
        bytes: u64,
        /// Available bytes, if known.
        free: Option<u64>,
    },
    /// A parameter is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The signal with this number arrived.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// Another worker failed first; its error is reported instead.
    #[error("stopped because another worker failed")]
    Cancelled,
}

impl Error {
    /// Create the error of a failed system call on `path`.
    pub fn system(action: &'static str, path: impl Into<PathBuf>, errno: Errno) -> Self {
        Self::System { action, path: path.into(), errno }
    }

    /// Return the class of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::System { errno, .. } => Kind::from(*errno),
            Self::Content { .. } => Kind::Content,
            Self::Room { .. } => Kind::NoSpace,
            Self::Memory { .. } => Kind::NoMemory,
            Self::Invalid(_) => Kind::Invalid,
            Self::Interrupted(_) | Self::Cancelled => Kind::Interrupted,
        }
    }

    /// Return the file or directory on which the operation failed, if any.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::System { path, .. } | Self::Content { path, .. } | Self::Room { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// Extension of results that adds action and path to an error number.
pub trait Context<T> {
    /// Add the action and the path. `path` is only called if there is an error.
    fn context<P: Into<PathBuf>>(self, action: &'static str, path: impl FnOnce() -> P) -> Result<T>;
}

impl<T> Context<T> for rustix::io::Result<T> {
    fn context<P: Into<PathBuf>>(self, action: &'static str, path: impl FnOnce() -> P) -> Result<T> {
        self.map_err(|errno| Error::system(action, path(), errno))
    }
}
