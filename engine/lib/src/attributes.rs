//! File attributes, read with newfstatat(2).
//!
//! All of its fields are needed, and it is about 15 ns faster than statx(2) (Linux 6.18).

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Result;

use crate::fast_map::FileId;

/// The attributes of a file.
#[derive(Debug, Clone, Copy)]
pub struct Attributes {
    /// File type.
    pub kind: FileType,
    /// Permission bits, including set-user-ID, set-group-ID and sticky bit.
    pub permissions: u32,
    /// Number of hard links.
    pub links: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Allocated space in bytes.
    pub allocated: u64,
    /// Last modification of the contents: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Last access: seconds since 1970, and nanoseconds.
    pub accessed: (i64, u32),
    /// Device and inode number.
    pub id: FileId,
}

impl Attributes {
    /// Return the attributes of `name` in a directory. Symbolic links are not followed, and nothing is automounted.
    #[inline]
    pub fn of(directory: impl AsFd, name: &CStr) -> Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        rustix::fs::statat(directory, name, flags).map(|found| Self::from(&found))
    }

    /// Return the attributes of an open file or directory, read with fstat(2).
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
