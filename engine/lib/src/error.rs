//! Every way in which an operation can fail as a whole, with the kind that the protocol names.
//!
//! A file that vanished or cannot be read is not here: walking operations count it and go on.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::Serialize;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of a failure, as written in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The file system or the quota is full, in blocks or in inodes.
    NoSpace,
    /// There is less free memory than is needed.
    NoMemory,
    /// Permission denied, or a read-only file system.
    Permission,
    /// The process or the system has too many open files.
    TooManyFiles,
    /// Something named does not exist.
    NotFound,
    /// Something that was to be made exists already.
    Exists,
    /// A signal asked for the end.
    Interrupted,
    /// A parameter makes no sense.
    Invalid,
    /// A file does not hold what it must hold.
    Content,
    /// Any other failure of the file system.
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

/// Why an operation failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action} {}: {}", path.display(), std::io::Error::from(*errno))]
    System {
        /// What was tried, as a verb: "create", "open directory".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },
    /// A file does not hold what it must hold.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// Known sizes are more than fits.
    #[error("not enough space in {}: {message}", path.display())]
    Room {
        /// Where.
        path: PathBuf,
        /// What is needed and what there is.
        message: String,
    },
    /// More memory than is free.
    #[error("{what} would take {bytes} bytes of memory{}", free.map_or_else(String::new, |free| format!(", but only {free} are free")))]
    Memory {
        /// What for.
        what: String,
        /// How much.
        bytes: u64,
        /// How much there is, if that is known.
        free: Option<u64>,
    },
    /// A parameter makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The named signal arrived.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// Another worker failed first; its error is the one to report.
    #[error("stopped because another worker failed")]
    Cancelled,
}

impl Error {
    /// A failed system call on `path`.
    pub fn system(action: &'static str, path: impl Into<PathBuf>, errno: Errno) -> Self {
        Self::System { action, path: path.into(), errno }
    }

    /// The class of this failure.
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

    /// The file or directory on which it failed, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::System { path, .. } | Self::Content { path, .. } | Self::Room { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// Adds what was tried, and on what, to a bare error number.
pub trait Context<T> {
    /// Names the action and the path; the path is only made when there is an error.
    fn context<P: Into<PathBuf>>(self, action: &'static str, path: impl FnOnce() -> P) -> Result<T>;
}

impl<T> Context<T> for rustix::io::Result<T> {
    fn context<P: Into<PathBuf>>(self, action: &'static str, path: impl FnOnce() -> P) -> Result<T> {
        self.map_err(|errno| Error::system(action, path(), errno))
    }
}
