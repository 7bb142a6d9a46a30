//! Directory entries from `getdents64`, many per call, parsed in place.
//!
//! `rustix::fs::RawDir` returns one entry at a time and does not expose its buffer. A walk scans all records of a call
//! twice, measures the call separately, and hands half of the records to another thread.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::FileType;
use rustix::io::{Errno, Result};

/// Size of the buffer in bytes: about 3,000 entries, so that few calls are needed and the buffer fits into the L2
/// cache.
const CAPACITY: usize = 128 << 10;
/// Offsets of the fields of `struct linux_dirent64`.
const LENGTH_AT: usize = 16;
const KIND_AT: usize = 18;
const NAME_AT: usize = 19;

/// A buffer for directory entries.
#[derive(Debug)]
pub struct Dents(Vec<u8>);

impl Default for Dents {
    fn default() -> Self {
        Self(vec![0; CAPACITY])
    }
}

impl Dents {
    /// Read the next entries of an open directory. Returns an empty slice at its end.
    pub fn read(&mut self, directory: impl AsFd) -> Result<&[u8]> {
        let descriptor = directory.as_fd().as_raw_fd();
        // SAFETY: the kernel writes at most `len` bytes to the buffer, which is borrowed mutably during the call.
        let length =
            unsafe { libc::syscall(libc::SYS_getdents64, descriptor, self.0.as_mut_ptr(), self.0.len()) };
        match usize::try_from(length) {
            Ok(length) => Ok(&self.0[..length]),
            Err(_) => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Name: any bytes except NUL and slash.
    pub name: &'a CStr,
    /// File type; `Unknown` if the file system does not report it.
    pub kind: FileType,
    /// Inode number in the directory entry.
    pub inode: u64,
}

impl<'a> Entry<'a> {
    /// Parse the entry at the start of `bytes`. Returns the entry and the length of its record in bytes; `None` if
    /// there is no complete record.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let inode = u64::from_ne_bytes(*bytes.first_chunk()?);
        let length = usize::from(u16::from_ne_bytes([*bytes.get(LENGTH_AT)?, *bytes.get(LENGTH_AT + 1)?]));
        let name = CStr::from_bytes_until_nul(bytes.get(NAME_AT..length)?).ok()?;
        Some((Self { name, kind: kind(bytes[KIND_AT]), inode }, length))
    }

    /// Return whether this is `.` or `..`.
    #[inline]
    pub fn is_dot(&self) -> bool {
        matches!(self.name.to_bytes(), b"." | b"..")
    }
}

fn kind(code: u8) -> FileType {
    match code {
        libc::DT_REG => FileType::RegularFile,
        libc::DT_DIR => FileType::Directory,
        libc::DT_LNK => FileType::Symlink,
        libc::DT_FIFO => FileType::Fifo,
        libc::DT_SOCK => FileType::Socket,
        libc::DT_CHR => FileType::CharacterDevice,
        libc::DT_BLK => FileType::BlockDevice,
        _ => FileType::Unknown,
    }
}

/// Return the entries in a buffer that [`Dents::read`] filled.
pub fn entries(mut bytes: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || {
        let (entry, length) = Entry::parse(bytes)?;
        bytes = &bytes[length..];
        Some(entry)
    })
}

/// Return the entries that may be directories. The names of other entries are not parsed.
pub(super) fn possible_directories(mut bytes: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || {
        while let Some(header) = bytes.first_chunk::<NAME_AT>() {
            let length = usize::from(u16::from_ne_bytes([header[LENGTH_AT], header[LENGTH_AT + 1]]));
            let (record, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            if matches!(header[KIND_AT], libc::DT_DIR | libc::DT_UNKNOWN) {
                return Entry::parse(record).map(|(entry, _)| entry);
            }
        }
        None
    })
}
