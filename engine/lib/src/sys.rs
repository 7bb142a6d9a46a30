//! Wrappers of the basic system calls. Except in [`open_root`], paths are relative to a directory descriptor and
//! symbolic links are not followed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

/// Permissions of new files, before the umask.
pub const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Permissions of new directories, before the umask.
pub const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// Maximum length in bytes of a path passed to the kernel, which accepts up to 4095 bytes.
const LONGEST_PATH: usize = 4000;

/// Flags to open directories.
pub const OPEN_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Flags to open files for reading.
pub const OPEN_READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Flags to create files that must not exist yet.
pub const OPEN_NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Open the directory that the user named. Symbolic links are followed.
pub fn open_root(path: &Path) -> Result<OwnedFd> {
    rustix::fs::openat(CWD, path, OPEN_DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())
}

/// Open a directory by its name in another directory.
pub fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    rustix::fs::openat(parent, name, OPEN_DIRECTORY, Mode::empty())
}

/// Restrictions of [`open_beneath`]: nothing outside the directory, no symbolic links.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Open a directory by its path below `root`, without following symbolic links or leaving `root`. The path may be
/// longer than 4095 bytes.
///
/// # Errors
/// The error of openat2(2), such as `ELOOP` for a symbolic link; `ENAMETOOLONG` if one component is too long.
pub fn open_beneath(root: impl AsFd, path: &[u8]) -> Result<OwnedFd> {
    open_resolved(root.as_fd(), path, BENEATH)
}

/// As [`open_beneath`], but return `EXDEV` at a mount point. Used for directories that are modified.
pub fn open_within(root: impl AsFd, path: &[u8]) -> Result<OwnedFd> {
    open_resolved(root.as_fd(), path, BENEATH | ResolveFlags::NO_XDEV)
}

fn open_resolved(root: BorrowedFd<'_>, mut path: &[u8], resolve: ResolveFlags) -> Result<OwnedFd> {
    let open = |from: BorrowedFd<'_>, path: &[u8]| {
        let path = if path.is_empty() { b"." } else { path };
        rustix::fs::openat2(from, path, OPEN_DIRECTORY, Mode::empty(), resolve)
    };
    let mut reached: Option<OwnedFd> = None;
    while path.len() > LONGEST_PATH {
        let end = path[..LONGEST_PATH].iter().rposition(|&byte| byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        reached = Some(open(reached.as_ref().map_or(root, AsFd::as_fd), &path[..end])?);
        path = &path[end + 1..];
    }
    open(reached.as_ref().map_or(root, AsFd::as_fd), path)
}

/// Open a directory by its name in another directory. Returns `ELOOP` for a symbolic link and `EXDEV` for a mount
/// point.
pub fn open_here(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    rustix::fs::openat2(parent, name, OPEN_DIRECTORY, Mode::empty(), BENEATH | ResolveFlags::NO_XDEV)
}

/// Write all of `data`; repeat short and interrupted writes.
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

/// Read the next bytes and return their number. A read may be short before the end of the file (bad sector, network
/// file system, maximum of 2 GiB per call). Only 0 means the end of the file.
#[inline]
pub fn read_some(file: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    retry(|| rustix::io::read(&file, &mut *buffer))
}

/// Repeat a call that a signal interrupted (`EINTR`).
#[inline]
pub fn retry<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Read until the buffer is full or the file ends. Returns the number of bytes read.
pub fn read_head(file: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(&file, &mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Progress of reading a file up to its size.
#[derive(Debug)]
pub struct Progress {
    size: u64,
    done: u64,
}

impl Progress {
    /// Start at offset 0 of a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self { size, done: 0 }
    }

    /// Read the next bytes. Returns their number, and whether the file is complete: its size is reached, or it ended. A
    /// file of size 0 is read to its end, because files in `/proc` report size 0.
    ///
    /// # Errors
    /// `ENODATA` if the file ends before its size: it was truncated, or its server lost data. Otherwise the error of
    /// read(2).
    #[inline]
    pub fn read(&mut self, file: impl AsFd, buffer: &mut [u8]) -> Result<(usize, bool)> {
        let count = read_some(file, buffer)?;
        self.advance(count).map(|over| (count, over))
    }

    /// Count bytes that were copied by other means; 0 means the end of the file. Returns whether the file is complete,
    /// as [`Progress::read`] does.
    ///
    /// # Errors
    /// `ENODATA` if the file ends before its size.
    #[inline]
    pub fn advance(&mut self, count: usize) -> Result<bool> {
        self.done += count as u64;
        match count {
            0 if self.done < self.size => Err(Errno::NODATA),
            0 => Ok(true),
            _ => Ok(self.size > 0 && self.done >= self.size),
        }
    }

    /// Return the number of bytes read.
    pub fn done(&self) -> u64 {
        self.done
    }
}

/// Raise the soft limit of open files to the hard limit; ignore errors. The usual soft limit of 1024 is too low,
/// because each thread keeps its own directories and files open.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Return the number of directories that a walk may keep open: a third of the descriptor limit, because files need the
/// rest, and at most 16,384, because more would only consume kernel memory.
pub fn descriptor_budget() -> usize {
    (descriptor_limit() / 3).min(16 << 10)
}

/// Return the soft limit of open files; `usize::MAX` if there is none.
pub fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, SeekFrom, ftruncate, memfd_create, seek};

    use super::*;

    #[test]
    fn a_file_that_ends_before_its_size_is_an_error() {
        let file = memfd_create(c"short", MemfdFlags::empty()).unwrap();
        write_all(&file, b"0123456789").unwrap();
        let mut buffer = [0; 8];
        let mut read = |size: u64| {
            seek(&file, SeekFrom::Start(0)).unwrap();
            let mut progress = Progress::new(size);
            let pieces: Vec<_> = (0..2).map(|_| progress.read(&file, &mut buffer)).collect();
            [pieces[0], pieces[1], progress.read(&file, &mut buffer)]
        };
        assert_eq!(read(10), [Ok((8, false)), Ok((2, true)), Ok((0, true))]);
        assert_eq!(read(11), [Ok((8, false)), Ok((2, false)), Err(Errno::NODATA)]);
        assert_eq!(read(0), [Ok((8, false)), Ok((2, false)), Ok((0, true))], "as in /proc");
    }

    /// One read(2) returns less than 2 GiB, whatever the size of the buffer. The buffer maps one file of 64 MiB
    /// repeatedly, and the file to be read is a hole, so the test uses little memory.
    #[test]
    fn a_buffer_larger_than_one_read_gives_is_filled_by_several() {
        const PIECE: usize = 64 << 20;
        const PIECES: usize = 33;
        let (hole, window) = (
            memfd_create(c"hole", MemfdFlags::empty()).unwrap(),
            memfd_create(c"window", MemfdFlags::empty()).unwrap(),
        );
        ftruncate(&hole, (PIECE * PIECES) as u64).unwrap();
        ftruncate(&window, PIECE as u64).unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&window);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the address range is reserved first; each mapping lies within it and replaces only a part of the
        // reservation.
        let buffer = unsafe {
            let place = libc::mmap(
                std::ptr::null_mut(),
                PIECE * PIECES,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(place, libc::MAP_FAILED);
            for piece in 0..PIECES {
                let at = place.cast::<u8>().add(piece * PIECE).cast();
                let mapped = libc::mmap(at, PIECE, access, libc::MAP_SHARED | libc::MAP_FIXED, descriptor, 0);
                assert_ne!(mapped, libc::MAP_FAILED);
            }
            std::slice::from_raw_parts_mut(place.cast::<u8>(), PIECE * PIECES)
        };
        let mut progress = Progress::new((PIECE * PIECES) as u64);
        let (first, over) = progress.read(&hole, buffer).unwrap();
        assert!(first < buffer.len() && !over);
        assert_eq!(progress.read(&hole, buffer).unwrap(), (buffer.len() - first, true));
    }
}
