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

/// Where [`open_beneath`] does not go.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Opens a directory by its path from another one, never through a link and never above it; the path
/// may be longer than the kernel takes at once.
pub fn open_beneath(root: impl AsFd, path: &[u8]) -> Result<OwnedFd> {
    open_resolved(root.as_fd(), path, BENEATH)
}

/// The same without mount points: for what is written and removed.
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

/// Opens a directory by its name in another one, unless it is a link or a mount point.
pub fn open_here(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    rustix::fs::openat2(parent, name, OPEN_DIRECTORY, Mode::empty(), BENEATH | ResolveFlags::NO_XDEV)
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

/// Reads what comes next: as much as the buffer holds, or less for many reasons (a bad sector further on, a
/// file server, 2 GiB at most). Only 0 is the end of the file.
#[inline]
pub fn read_some(file: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    retry(|| rustix::io::read(&file, &mut *buffer))
}

/// Calls again what a signal has interrupted.
#[inline]
pub fn retry<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Reads until the buffer is full or the file ends.
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

/// How far a file has been read, and how far it has to be.
#[derive(Debug)]
pub struct Progress {
    size: u64,
    done: u64,
}

impl Progress {
    /// Of a file of this size that has not been read.
    pub fn new(size: u64) -> Self {
        Self { size, done: 0 }
    }

    /// Reads what comes next; returns how much, and whether that was the last of it: the file has been read
    /// as far as its size, or ends there. `/proc` knows no sizes, so one of 0 may be exceeded.
    ///
    /// # Errors
    /// `ENODATA` if the file ends before its size: it was cut off, or its server lost the rest.
    #[inline]
    pub fn read(&mut self, file: impl AsFd, buffer: &mut [u8]) -> Result<(usize, bool)> {
        let count = read_some(file, buffer)?;
        self.advance(count).map(|over| (count, over))
    }

    /// Counts what was copied otherwise; 0 is the end. As of [`Progress::read`].
    ///
    /// # Errors
    /// As of [`Progress::read`].
    #[inline]
    pub fn advance(&mut self, count: usize) -> Result<bool> {
        self.done += count as u64;
        match count {
            0 if self.done < self.size => Err(Errno::NODATA),
            0 => Ok(true),
            _ => Ok(self.size > 0 && self.done >= self.size),
        }
    }

    /// How much has been read.
    pub fn done(&self) -> u64 {
        self.done
    }
}

/// Lets the process have as many descriptors as it may: a shell gives 1024, and each thread has directories
/// and files of its own open.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// How many directories a walk keeps open: a third of the descriptors, the rest is for files; more than
/// this would pin kernel memory for nothing.
pub fn descriptor_budget() -> usize {
    (descriptor_limit() / 3).min(16 << 10)
}

/// How many descriptors the process may have.
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

    /// One read gives less than 2 GiB, whatever is asked for. The buffer is one small file, mapped again and
    /// again, and the file one hole: neither takes any memory.
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
        // SAFETY: the place is reserved first; each mapping then lies within it and over nothing else.
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
