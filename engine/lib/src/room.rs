//! Free space of file systems. Known requirements are compared with it before anything is written. Files on tmpfs and
//! ramfs use memory, so they are counted together with buffers there.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{fstatfs, fstatvfs};
use rustix::io::Errno;

use crate::error::{Context, Error, Result};
use crate::memory;

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
/// Magic numbers of file systems that may compress or deduplicate data: btrfs, ZFS, bcachefs, F2FS.
const SAVING: [u64; 4] = [0x9123_683e, 0x2fc1_2fc1, 0xca45_1a4e, 0xf2f5_2010];
/// Allocation unit of tmpfs, and approximate memory of a file besides its contents, both in bytes.
const PAGE: u64 = 4096;
const INODE: u64 = 1024;

/// Space required by the files to be created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Number of files and directories.
    pub entries: u64,
    /// Total size of the contents in bytes.
    pub bytes: u64,
    /// Lower bound of the bytes that remain after compression and deduplication.
    pub least: u64,
    /// Total size of the contents in bytes, each file rounded up to whole pages.
    pub pages: u64,
    /// Memory of the process for buffers, in bytes.
    pub memory: u64,
}

impl Need {
    /// Add `count` files of `size` bytes whose contents cannot be compressed or deduplicated.
    pub fn files(&mut self, count: u64, size: u64) {
        self.entries = self.entries.saturating_add(count);
        self.bytes = self.bytes.saturating_add(count.saturating_mul(size));
        self.least = self.least.saturating_add(count.saturating_mul(size));
        let pages = size.div_ceil(PAGE).saturating_mul(PAGE);
        self.pages = self.pages.saturating_add(count.saturating_mul(pages));
    }
}

/// Free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Free {
    /// Free inodes; `None` if there is no limit.
    entries: Option<u64>,
    bytes: u64,
    saving: bool,
    /// Available memory in bytes if the file system stores files in memory; `None` otherwise, or if it is unknown.
    memory: Option<u64>,
}

impl Free {
    /// Return the bytes available for file contents.
    fn contents(&self) -> u64 {
        self.bytes.min(self.memory.unwrap_or(u64::MAX))
    }
}

fn free(directory: impl AsFd) -> std::result::Result<Free, Errno> {
    let (about, kind) = (fstatvfs(&directory)?, fstatfs(&directory)?);
    let privileged = rustix::process::geteuid().is_root();
    let (blocks, entries) =
        if privileged { (about.f_bfree, about.f_ffree) } else { (about.f_bavail, about.f_favail) };
    #[expect(clippy::cast_sign_loss, reason = "a magic number is its bits")]
    let magic = kind.f_type as u64 & 0xffff_ffff;
    Ok(Free {
        entries: (about.f_files > 0).then_some(entries),
        // A tmpfs without a size limit reports 0 blocks.
        bytes: if about.f_blocks == 0 { u64::MAX } else { blocks.saturating_mul(about.f_frsize) },
        saving: SAVING.contains(&magic),
        memory: [TMPFS, RAMFS].contains(&magic).then(memory::free).flatten(),
    })
}

/// Return a message if there is too little space, inodes or memory; otherwise `None`.
fn missing(need: &Need, free: &Free) -> Option<String> {
    let bytes = if free.saving { need.least } else { need.bytes };
    let inodes = need.entries.saturating_mul(INODE);
    let memory = need.pages.max(need.bytes).saturating_add(inodes).saturating_add(need.memory);
    if let Some(entries) = free.entries.filter(|&entries| need.entries > entries) {
        return Some(format!(
            "{} files and directories are needed, but only {entries} are possible",
            need.entries
        ));
    }
    if bytes > free.bytes {
        return Some(format!("{bytes} bytes are needed, but only {} are free", free.bytes));
    }
    let free = free.memory.filter(|&free| memory > free)?;
    Some(format!("{memory} bytes of memory are needed for files and buffers, but only {free} are free"))
}

/// Check that the required space is available.
///
/// # Errors
/// Kind `no_space`, with required and available space.
pub fn check(directory: impl AsFd, path: &Path, need: &Need) -> Result<()> {
    let free = free(directory).context("determine the free space of", || path)?;
    missing(need, &free).map_or(Ok(()), |message| Err(Error::Room { path: path.to_owned(), message }))
}

/// Divisor of the share of initially available memory that must remain while files grow in memory.
const LEAST: u64 = 8;

/// A monitor of the available memory while files of unknown final size grow. If files are stored in memory, the work
/// must stop before memory is exhausted.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    least: u64,
}

impl Watch {
    /// Create a monitor; `None` if the file system does not store files in memory or the available memory is unknown.
    pub fn of(directory: impl AsFd, path: &Path) -> Result<Option<Self>> {
        let memory = free(directory).context("determine the free space of", || path)?.memory;
        Ok(memory.map(|memory| Self { path: path.to_owned(), least: memory / LEAST }))
    }

    /// Return an error if less than an eighth of the initially available memory is left.
    ///
    /// # Errors
    /// Kind `no_space`.
    pub fn check(&self) -> Result<()> {
        match memory::free() {
            Some(free) if free < self.least => Err(Error::Room {
                path: self.path.clone(),
                message: format!(
                    "its files are in memory: only {free} bytes of memory are left, less than an eighth of what \
                     was free at the start"
                ),
            }),
            _ => Ok(()),
        }
    }
}

/// Remaining space for files whose sizes become known one by one. Space for each file is reserved before it is written.
#[derive(Debug)]
pub struct Left(AtomicU64);

impl Left {
    /// Start with all free space; `None` for a file system that may compress or deduplicate data.
    pub fn of(directory: impl AsFd, path: &Path) -> Result<Option<Self>> {
        let free = free(directory).context("determine the free space of", || path)?;
        Ok((!free.saving).then(|| Self(AtomicU64::new(free.contents()))))
    }

    /// Reserve space for a file. If too little is left, read the free space again, because files may have been deleted
    /// meanwhile. Returns `ENOSPC` if it is still too little.
    pub fn take(&self, directory: impl AsFd, bytes: u64) -> std::result::Result<(), Errno> {
        self.try_take(bytes).or_else(|_| {
            self.0.store(free(directory)?.contents(), Ordering::Relaxed);
            self.try_take(bytes)
        })
    }

    fn try_take(&self, bytes: u64) -> std::result::Result<(), Errno> {
        let took = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        took.map(|_| ()).map_err(|_| Errno::NOSPC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(count: u64, size: u64) -> Need {
        let mut need = Need::default();
        need.files(count, size);
        need
    }

    const DISK: Free = Free { entries: Some(100), bytes: 1 << 20, saving: false, memory: None };

    #[test]
    fn what_fits_is_let_through_and_what_does_not_is_told() {
        assert_eq!(missing(&need(100, 10 << 10), &DISK), None);
        assert!(missing(&need(101, 1), &DISK).is_some_and(|told| told.contains("101 files")));
        assert!(missing(&need(100, 11 << 10), &DISK).is_some_and(|told| told.contains("1126400 bytes")));
        assert_eq!(missing(&need(1000, 1), &Free { entries: None, ..DISK }), None);
    }

    #[test]
    fn a_file_system_that_saves_has_to_hold_what_cannot_be_saved() {
        let half = Need { least: 1 << 19, ..need(100, 11 << 10) };
        assert_eq!(missing(&half, &Free { saving: true, ..DISK }), None);
        assert!(missing(&half, &DISK).is_some());
    }

    #[test]
    fn files_in_memory_and_buffers_are_one_sum() {
        let memory = Free { memory: Some(100 << 10), ..DISK };
        // A file of one byte occupies a page plus an inode.
        assert_eq!(missing(&need(20, 1), &memory), None);
        assert!(missing(&need(21, 1), &memory).is_some());
        let buffers = Need { memory: 30 << 10, ..need(10, 4096) };
        assert_eq!(missing(&Need { memory: 0, ..buffers }, &memory), None);
        let buffers = Need { memory: 60 << 10, ..buffers };
        assert!(missing(&buffers, &memory).is_some_and(|told| told.contains("memory")));
    }

    #[test]
    fn growing_files_end_the_work_before_memory_is_gone() {
        let watch = |least| Watch { path: "/mnt".into(), least };
        assert!(watch(0).check().is_ok());
        assert_eq!(watch(u64::MAX).check().unwrap_err().kind(), crate::Kind::NoSpace);
    }

    #[test]
    fn files_one_after_the_other_fit_until_there_is_no_room() {
        let left = Left(AtomicU64::new(10));
        assert_eq!([6, 5, 4].map(|bytes| left.try_take(bytes)), [Ok(()), Err(Errno::NOSPC), Ok(())]);
    }
}
