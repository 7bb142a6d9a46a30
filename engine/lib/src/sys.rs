//! The few system calls that everything here is made of, always relative to a directory descriptor
//! and never through a symbolic link.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

/// Permissions of new files, before the umask.
pub const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Permissions of new directories, before the umask.
pub const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// The kernel takes 4095 bytes at once.
const LONGEST_PATH: usize = 4000;

/// How directories are opened.
pub const OPEN_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How files are opened to be read.
pub const OPEN_READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How files that must not exist yet are opened to be written.
pub const OPEN_NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory that the user named; only here may a symbolic link be followed.
pub fn open_root(path: &Path) -> Result<OwnedFd> {
    rustix::fs::openat(CWD, path, OPEN_DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())
}

/// Opens a directory within a directory.
pub fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    rustix::fs::openat(parent, name, OPEN_DIRECTORY, Mode::empty())
}

/// Opens a directory by its path from another one, never through a link and never above it; the path
/// may be longer than the kernel takes at once.
pub fn open_beneath(root: impl AsFd, mut path: &[u8]) -> Result<OwnedFd> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let open = |from: BorrowedFd<'_>, path: &[u8]| {
        let path = if path.is_empty() { b"." } else { path };
        rustix::fs::openat2(from, path, OPEN_DIRECTORY, Mode::empty(), beneath)
    };
    let mut reached: Option<OwnedFd> = None;
    while path.len() > LONGEST_PATH {
        let end = path[..LONGEST_PATH].iter().rposition(|&byte| byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let from = reached.as_ref().map_or(root.as_fd(), AsFd::as_fd);
        reached = Some(open(from, &path[..end])?);
        path = &path[end + 1..];
    }
    open(reached.as_ref().map_or(root.as_fd(), AsFd::as_fd), path)
}

/// Makes a directory and opens it.
pub fn make_directory(parent: impl AsFd, name: &str) -> Result<OwnedFd> {
    rustix::fs::mkdirat(&parent, name, DIRECTORY_MODE)?;
    open_directory(parent, name)
}

/// Writes all of `data`.
#[inline]
pub fn write_all(file: impl AsFd, mut data: &[u8]) -> Result<()> {
    while !data.is_empty() {
        match rustix::io::write(&file, data) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => data = &data[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Reads until the buffer is full or the file is over; a short read is taken for the end of the
/// file, which holds for regular files.
#[inline]
pub fn read_some(file: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match rustix::io::read(&file, &mut *buffer) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// How many descriptors the process may have.
pub fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
