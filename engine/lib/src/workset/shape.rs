//! Distribution of numbered files over directories and threads.

use std::ops::Range;

use serde::Serialize;

use crate::error::{Error, Result};

/// Order in which a worker processes its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum FileOrder {
    /// Ascending, in the order of creation.
    #[default]
    Created,
    /// Descending, the last file first.
    Reverse,
    /// In a random order that depends only on the seed.
    Random,
}

/// Number of files, directories and threads, and the order of processing.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Number of files.
    pub files: u64,
    /// Number of directories.
    pub directories: u64,
    /// Number of threads.
    pub threads: usize,
    /// Order in which each worker processes its files.
    pub order: FileOrder,
    /// Seed of the random order.
    pub seed: u64,
}

impl Shape {
    /// Check the numbers. Returns an error of the kind `invalid` if one is 0 or if there are more directories than
    /// files.
    pub fn check(&self) -> Result<()> {
        let Self { files, directories, threads, .. } = *self;
        if files == 0 || directories == 0 || threads == 0 {
            return Err(Error::Invalid("files, dirs and threads must be at least 1".into()));
        }
        if directories > files {
            return Err(Error::Invalid(format!("more directories ({directories}) than files ({files})")));
        }
        Ok(())
    }

    /// Return the number of the directory that contains a file.
    #[inline]
    pub(super) fn directory_of(&self, file: u64) -> u64 {
        let position = (u128::from(file) + 1) * u128::from(self.directories) - 1;
        u64::try_from(position / u128::from(self.files)).unwrap_or(u64::MAX)
    }

    /// Return the files of one worker.
    pub(super) fn share(&self, worker: usize) -> Range<u64> {
        share(self.files, self.threads as u64, worker as u64)
    }

    /// Return the directories of one worker.
    pub fn share_of_directories(&self, worker: usize) -> Range<u64> {
        share(self.directories, self.threads as u64, worker as u64)
    }
}

/// Return the part of `0..total` that belongs to `worker`. Parts differ by at most one in length.
fn share(total: u64, workers: u64, worker: u64) -> Range<u64> {
    let edge = |index: u64| {
        let edge = u128::from(total) * u128::from(index) / u128::from(workers);
        u64::try_from(edge).unwrap_or(total)
    };
    edge(worker)..edge(worker + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_as_many_directories_as_threads_each_thread_has_its_own() {
        for (files, threads) in [(10u64, 3usize), (1000, 7), (64, 64), (12_345, 16)] {
            let (order, seed) = (FileOrder::Created, 0);
            let shape = Shape { files, directories: threads as u64, threads, order, seed };
            for worker in 0..threads {
                assert!(shape.share(worker).all(|file| shape.directory_of(file) == worker as u64));
            }
            assert_eq!((0..threads).map(|worker| shape.share(worker).count()).sum::<usize>() as u64, files);
        }
    }
}
