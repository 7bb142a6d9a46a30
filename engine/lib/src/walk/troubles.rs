//! Files and directories that vanished or refused: counted, with a few examples, never fatal.

use std::path::Path;

use rustix::io::Errno;
use serde::Serialize;

use crate::document::Warning;
use crate::error::{Error, Kind};

const EXAMPLES: usize = 5;

/// Why a visitor could not do its work on a file.
#[derive(Debug)]
pub enum Trouble {
    /// This file vanished or refused; the walk goes on.
    File(&'static str, Errno),
    /// The walk cannot go on.
    Fatal(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// What a visitor returns.
pub type Visit<T = ()> = Result<T, Trouble>;

/// Names what was tried on a file, where an error is no more than this file's.
pub trait Tried<T> {
    /// Turns an error number into trouble with this file.
    fn tried(self, action: &'static str) -> Visit<T>;
}

impl<T> Tried<T> for rustix::io::Result<T> {
    fn tried(self, action: &'static str) -> Visit<T> {
        self.map_err(|errno| Trouble::File(action, errno))
    }
}

/// How many files gave trouble.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Troubles {
    /// They were there and then they were not.
    pub vanished: u64,
    /// Permission denied.
    pub denied: u64,
    /// Anything else.
    pub failed: u64,
    /// Directories that were left out because they lie on another file system: no failure.
    pub other_file_systems: u64,
    /// The first few, for people.
    #[serde(skip)]
    pub examples: Vec<String>,
}

impl Troubles {
    /// Counts one.
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

    /// Adds those of another thread.
    pub fn merge(&mut self, other: Self) {
        self.vanished += other.vanished;
        self.denied += other.denied;
        self.failed += other.failed;
        self.other_file_systems += other.other_file_systems;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.vanished + self.denied + self.failed
    }

    /// A warning that names the examples, if there is anything to warn of.
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
