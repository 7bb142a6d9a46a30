//! What the kernel tells about a file.
//!
//! By `newfstatat`: all of its fields are wanted, and it is some 15 ns quicker than `statx` (Linux 6.18).

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Result;

use crate::fast_map::FileId;

/// The attributes of a file.
#[derive(Debug, Clone, Copy)]
pub struct Attributes {
    /// What it is.
    pub kind: FileType,
    /// Its permission bits.
    pub permissions: u32,
    /// How many names it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its length in bytes.
    pub size: u64,
    /// The bytes that are allocated for it.
    pub allocated: u64,
    /// Last change of its contents: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Last access.
    pub accessed: (i64, u32),
    /// Which file it is.
    pub id: FileId,
}

impl Attributes {
    /// Of a name in a directory; of a link itself, not of what it points to.
    #[inline]
    pub fn of(directory: impl AsFd, name: &CStr) -> Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        rustix::fs::statat(directory, name, flags).map(|found| Self::from(&found))
    }

    /// Of an open file or directory.
    #[inline]
    pub fn of_open(file: impl AsFd) -> Result<Self> {
        rustix::fs::fstat(file).map(|found| Self::from(&found))
    }
}

impl From<&Stat> for Attributes {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes and nanoseconds are never negative; no file has 2^32 names"
    )]
    fn from(found: &Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(found.st_mode),
            permissions: found.st_mode & 0o7777,
            links: found.st_nlink as u32,
            uid: found.st_uid,
            gid: found.st_gid,
            size: found.st_size as u64,
            allocated: found.st_blocks as u64 * 512,
            modified: (found.st_mtime, found.st_mtime_nsec as u32),
            accessed: (found.st_atime, found.st_atime_nsec as u32),
            id: FileId { device: found.st_dev, inode: found.st_ino },
        }
    }
}
