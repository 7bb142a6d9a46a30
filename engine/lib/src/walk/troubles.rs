//! Files and directories that vanished or could not be accessed. They are counted, with a few examples, and do not end
//! the walk.

use std::path::Path;

use rustix::io::Errno;
use serde::Serialize;

use crate::document::Warning;
use crate::error::{Error, Kind};

const EXAMPLES: usize = 5;

/// The reason why a visitor could not process a file.
#[derive(Debug)]
pub enum Trouble {
    /// This file vanished or cannot be accessed: the failed action and the error number. The walk continues.
    File(&'static str, Errno),
    /// An error that ends the walk.
    Fatal(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// Result of a visitor's method.
pub type Visit<T = ()> = Result<T, Trouble>;

/// Conversion of system call errors that concern only one file.
pub trait Tried<T> {
    /// Convert an error number into [`Trouble::File`]. `action` is a verb, for messages.
    fn tried(self, action: &'static str) -> Visit<T>;
}

impl<T> Tried<T> for rustix::io::Result<T> {
    fn tried(self, action: &'static str) -> Visit<T> {
        self.map_err(|errno| Trouble::File(action, errno))
    }
}

/// Number of files and directories with errors, by class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Troubles {
    /// Found in a listing, but no longer there (`ENOENT`).
    pub vanished: u64,
    /// Permission denied, or a read-only file system.
    pub denied: u64,
    /// Any other error.
    pub failed: u64,
    /// Directories skipped because they are on another file system. This is not an error.
    pub other_file_systems: u64,
    /// Messages of the first few errors.
    #[serde(skip)]
    pub examples: Vec<String>,
}

impl Troubles {
    /// Count an error.
    pub fn add(&mut self, action: &'static str, path: &Path, errno: Errno) {
        match Kind::from(errno) {
            Kind::NotFound => self.vanished += 1,
            Kind::Permission => self.denied += 1,
            _ => self.failed += 1,
        }
        if self.examples.len() < EXAMPLES {
            self.examples.push(Error::system(action, path, errno).to_string());
        }
    }

    /// Add the errors of another thread.
    pub fn merge(&mut self, other: Self) {
        self.vanished += other.vanished;
        self.denied += other.denied;
        self.failed += other.failed;
        self.other_file_systems += other.other_file_systems;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }

    /// Return the number of errors.
    pub fn count(&self) -> u64 {
        self.vanished + self.denied + self.failed
    }

    /// Return a warning with the counts and examples; `None` if there are no errors.
    pub fn warning(&self) -> Option<Warning> {
        let Self { vanished, denied, failed, examples, .. } = self;
        (self.count() > 0).then(|| Warning {
            kind: "files_left_out",
            message: format!(
                "skipped: {vanished} vanished, {denied} not permitted, {failed} failed; {}",
                examples.join("; ")
            ),
        })
    }
}
