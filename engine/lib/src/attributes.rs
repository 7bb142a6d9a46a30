//! What `statx` tells about a file, with only the fields that are needed.

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Result;

use crate::fast_map::FileId;

const WANTED: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::MODE)
    .union(StatxFlags::NLINK)
    .union(StatxFlags::UID)
    .union(StatxFlags::GID)
    .union(StatxFlags::MTIME)
    .union(StatxFlags::ATIME)
    .union(StatxFlags::INO)
    .union(StatxFlags::SIZE)
    .union(StatxFlags::BLOCKS);

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
        Self::ask(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
    }

    /// Of an open file or directory.
    #[inline]
    pub fn of_open(file: impl AsFd) -> Result<Self> {
        Self::ask(file, c"", AtFlags::EMPTY_PATH)
    }

    #[inline]
    fn ask(directory: impl AsFd, name: &CStr, flags: AtFlags) -> Result<Self> {
        let found = rustix::fs::statx(directory, name, flags, WANTED)?;
        let mode = u32::from(found.stx_mode);
        Ok(Self {
            kind: FileType::from_raw_mode(mode),
            permissions: mode & 0o7777,
            links: found.stx_nlink,
            uid: found.stx_uid,
            gid: found.stx_gid,
            size: found.stx_size,
            allocated: found.stx_blocks * 512,
            modified: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
            accessed: (found.stx_atime.tv_sec, found.stx_atime.tv_nsec),
            id: FileId {
                device: u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor),
                inode: found.stx_ino,
            },
        })
    }
}
