//! Room on a file system: what is known to be needed is compared with what is free before anything is
//! written. Files of tmpfs and ramfs are memory, so that they count together with the buffers.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{fstatfs, fstatvfs};
use rustix::io::Errno;

use crate::error::{Context, Error, Result};
use crate::memory;

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
/// File systems that may store less than they are given: btrfs, ZFS, bcachefs, F2FS.
const SAVING: [u64; 4] = [0x9123_683e, 0x2fc1_2fc1, 0xca45_1a4e, 0xf2f5_2010];
/// In what tmpfs takes memory, and about what each file takes there beside its contents.
const PAGE: u64 = 4096;
const INODE: u64 = 1024;

/// What is going to be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Files and directories.
    pub entries: u64,
    /// Contents, as long as they are.
    pub bytes: u64,
    /// The part of them that no file system can save.
    pub least: u64,
    /// Contents in whole pages.
    pub pages: u64,
    /// Memory of the process beside them.
    pub memory: u64,
}

impl Need {
    /// Another `count` files of this size, none of whose contents can be saved.
    pub fn files(&mut self, count: u64, size: u64) {
        self.entries = self.entries.saturating_add(count);
        self.bytes = self.bytes.saturating_add(count.saturating_mul(size));
        self.least = self.least.saturating_add(count.saturating_mul(size));
        let pages = size.div_ceil(PAGE).saturating_mul(PAGE);
        self.pages = self.pages.saturating_add(count.saturating_mul(pages));
    }
}

/// What a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Free {
    /// `None` where there is no end of it.
    entries: Option<u64>,
    bytes: u64,
    saving: bool,
    /// The memory of the system, where that is what files take.
    memory: Option<u64>,
}

impl Free {
    /// What contents may take.
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
        // A tmpfs without a bound says 0 of 0.
        bytes: if about.f_blocks == 0 { u64::MAX } else { blocks.saturating_mul(about.f_frsize) },
        saving: SAVING.contains(&magic),
        memory: [TMPFS, RAMFS].contains(&magic).then(memory::free).flatten(),
    })
}

/// Says what there is too little of, if there is.
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

/// Fails if this does not fit.
///
/// # Errors
/// Of the kind `no_space`, with what is needed and what is there.
pub fn check(directory: impl AsFd, path: &Path, need: &Need) -> Result<()> {
    let free = free(directory).context("determine the free space of", || path)?;
    missing(need, &free).map_or(Ok(()), |message| Err(Error::Room { path: path.to_owned(), message }))
}

/// What files in memory may leave at least of what is free, as a share of it.
const LEAST: u64 = 8;

/// A watch over files that grow while work goes on, by how much nobody knows beforehand: where they are memory,
/// the work has to end before that is gone.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    least: u64,
}

impl Watch {
    /// `None` where files are not memory.
    pub fn of(directory: impl AsFd, path: &Path) -> Result<Option<Self>> {
        let memory = free(directory).context("determine the free space of", || path)?.memory;
        Ok(memory.map(|memory| Self { path: path.to_owned(), least: memory / LEAST }))
    }

    /// Fails if less memory is left than an eighth of what was free at the start.
    ///
    /// # Errors
    /// Of the kind `no_space`.
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

/// Room for files whose sizes are known one after the other: each is compared before it is written.
#[derive(Debug)]
pub struct Left(AtomicU64);

impl Left {
    /// All that the file system has; `None` for one that may store less than it is given.
    pub fn of(directory: impl AsFd, path: &Path) -> Result<Option<Self>> {
        let free = free(directory).context("determine the free space of", || path)?;
        Ok((!free.saving).then(|| Self(AtomicU64::new(free.contents()))))
    }

    /// Takes the room for a file; looks again where there is none, since others may have given some back.
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
        // A file of a byte takes a page, and something beside it.
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
