//! The part of the kernel's FUSE protocol that one file needs (include/uapi/linux/fuse.h, 7.31 and later), without
//! libfuse.
//!
//! The file is opened with direct I/O and parallel direct writes. Therefore each request of a loop device arrives
//! unchanged, up to 1 MiB, and many are in flight at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::little_endian::{u32_at, u64_at};
use crate::sys;

const MAX_WRITE: u32 = 1 << 20;
const IN_HEADER: usize = 40;
const WRITE_IN: usize = 40;
const ROOT: u64 = 1;
const FILE: u64 = 2;
const FOREVER: u64 = 3600 * 24;

/// Return a buffer that is large enough for any request.
pub(crate) fn buffer() -> Vec<u8> {
    vec![0; MAX_WRITE as usize + 4096]
}

/// A connection to the kernel, with a mount.
pub(crate) struct Connection(OwnedFd);

/// An I/O request. The data of a write starts at `data` in the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Io {
    Read {
        offset: u64,
        length: u32,
    },
    Write {
        offset: u64,
        length: u32,
        data: usize,
    },
    Flush,
    Discard {
        offset: u64,
        length: u64,
    },
    /// Write zeros. The request contains no data.
    Zero {
        offset: u64,
        length: u64,
    },
}

/// The result of receiving a request.
pub(crate) enum Got {
    /// An I/O request and its number. It must be answered.
    Io(u64, Io),
    /// Another request, which is already answered.
    Other,
    /// No request is waiting (nonblocking descriptor only).
    Nothing,
    /// The connection has ended.
    Ended,
}

impl Connection {
    /// Mount on a directory. `initialize` must follow.
    pub(crate) fn mount(directory: &Path) -> io::Result<Self> {
        let fd = sys::open(Path::new("/dev/fuse"), libc::O_RDWR)?;
        sys::mount_fuse(fd.as_fd(), directory)?;
        Ok(Self(fd))
    }

    /// Answer the kernel's first request, which is INIT. It is answered like any other.
    pub(crate) fn initialize(&self, size: u64) -> io::Result<()> {
        receive(self.0.as_fd(), &mut buffer(), size).map(drop)
    }

    /// Return the first descriptor.
    pub(crate) fn first(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Return another descriptor, with its own queue. Its requests must be answered through it.
    pub(crate) fn another(&self) -> io::Result<OwnedFd> {
        sys::clone_fuse(self.0.as_fd())
    }
}

struct Out(Vec<u8>);

impl Out {
    fn new() -> Self {
        Self(Vec::with_capacity(256))
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn attributes(self, node: u64, size: u64) -> Self {
        let (mode, size) =
            if node == FILE { (libc::S_IFREG | 0o600, size) } else { (libc::S_IFDIR | 0o700, 0) };
        let times = |out: Self| out.u64(0).u64(0).u64(0).u32(0).u32(0).u32(0);
        times(self.u64(node).u64(size).u64(size / 512)).u32(mode).u32(1).u32(0).u32(0).u32(0).u32(4096).u32(0)
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64_at(bytes, at).unwrap_or(0)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32_at(bytes, at).unwrap_or(0)
}

/// Answer a request with data or an error number.
pub(crate) fn reply(fd: BorrowedFd<'_>, unique: u64, result: Result<&[u8], i32>) -> io::Result<()> {
    let (error, data) = match result {
        Ok(data) => (0, data),
        Err(error) => (-error, &[][..]),
    };
    let mut header = [0; 16];
    let length = u32::try_from(16 + data.len()).expect("bug: a reply has at most 1 MiB");
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&error.to_le_bytes());
    header[8..].copy_from_slice(&unique.to_le_bytes());
    match sys::write_two(fd, &header, data) {
        // The request no longer exists (interrupted, or the connection was aborted): no reply is needed.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => Ok(()),
        other => other,
    }
}

/// Answer a write of `length` bytes.
pub(crate) fn reply_written(fd: BorrowedFd<'_>, unique: u64, length: u32) -> io::Result<()> {
    reply(fd, unique, Ok(&Out::new().u32(length).u32(0).0))
}

/// Receive the next request. Requests other than I/O are answered here.
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8], size: u64) -> io::Result<Got> {
    let length = match sys::read(fd, buffer) {
        Ok(length) => length,
        Err(error) => {
            return match error.raw_os_error() {
                Some(libc::EAGAIN) => Ok(Got::Nothing),
                Some(libc::ENODEV) => Ok(Got::Ended),
                Some(libc::EINTR | libc::ENOENT) => Ok(Got::Other),
                _ => Err(error),
            };
        }
    };
    let (header, body) = buffer[..length].split_at(IN_HEADER.min(length));
    let (operation, unique, node) = (half(header, 4), number(header, 8), number(header, 16));
    let io = match operation {
        15 => Io::Read { offset: number(body, 8), length: half(body, 16) },
        16 => Io::Write { offset: number(body, 8), length: half(body, 16), data: IN_HEADER + WRITE_IN },
        20 => Io::Flush,
        43 => {
            let (offset, length, mode) = (number(body, 8), number(body, 16), half(body, 24));
            if mode & libc::FALLOC_FL_PUNCH_HOLE.unsigned_abs() != 0 {
                Io::Discard { offset, length }
            } else if mode & libc::FALLOC_FL_ZERO_RANGE.unsigned_abs() != 0 {
                Io::Zero { offset, length }
            } else {
                reply(fd, unique, Err(libc::EOPNOTSUPP))?;
                return Ok(Got::Other);
            }
        }
        _ => {
            if let Some(result) = answer(operation, node, body, size) {
                reply(fd, unique, result.as_ref().map(|out| &out.0[..]).map_err(|error| *error))?;
            }
            return Ok(Got::Other);
        }
    };
    let io = match io {
        // A read across the end is short, and one behind it is empty: read(2).
        Io::Read { offset, length } => {
            let left = u32::try_from(size.saturating_sub(offset)).unwrap_or(u32::MAX);
            Io::Read { offset, length: length.min(left) }
        }
        other => other,
    };
    if matches!(io, Io::Read { length: 0, .. }) {
        reply(fd, unique, Ok(&[]))?;
        return Ok(Got::Other);
    }
    let inside = match io {
        Io::Read { offset, length } | Io::Write { offset, length, .. } => {
            length <= MAX_WRITE && offset.checked_add(u64::from(length)).is_some_and(|end| end <= size)
        }
        Io::Discard { offset, length } | Io::Zero { offset, length } => {
            offset.checked_add(length).is_some_and(|end| end <= size)
        }
        Io::Flush => true,
    };
    if inside {
        return Ok(Got::Io(unique, io));
    }
    reply(fd, unique, Err(libc::EINVAL))?;
    Ok(Got::Other)
}

/// Return the answer to a request other than I/O; `None` if the kernel expects none.
fn answer(operation: u32, node: u64, body: &[u8], size: u64) -> Option<Result<Out, i32>> {
    Some(match operation {
        2 | 36 | 42 => return None, // FORGET, INTERRUPT, BATCH_FORGET
        1 if node == ROOT && body == b"disk\0" => {
            Ok(Out::new().u64(FILE).u64(0).u64(FOREVER).u64(FOREVER).u32(0).u32(0).attributes(FILE, size))
        }
        1 => Err(libc::ENOENT),
        3 => Ok(Out::new().u64(FOREVER).u32(0).u32(0).attributes(node, size)),
        4 => Err(libc::EPERM), // SETATTR: the disk's size is fixed
        14 => {
            const DIRECT_IO: u32 = 1;
            const NO_FLUSH: u32 = 1 << 5;
            const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
            Ok(Out::new().u64(0).u32(DIRECT_IO | NO_FLUSH | PARALLEL_DIRECT_WRITES).u32(0))
        }
        27 => Ok(Out::new().u64(0).u32(0).u32(0)),
        17 => {
            let blocks = size / 4096;
            let counts = Out::new().u64(blocks).u64(0).u64(0).u64(1).u64(0).u32(4096).u32(255).u32(4096);
            Ok((0..7).fold(counts, |out, _| out.u32(0)))
        }
        18 | 25 | 29 | 30 | 38 => Ok(Out::new()), // RELEASE, FLUSH, RELEASEDIR, FSYNCDIR, DESTROY
        26 => Ok(greeting(half(body, 12))),
        28 => Ok(if number(body, 8) == 0 { entry() } else { Out::new() }),
        _ => Err(libc::ENOSYS),
    })
}

/// Return the only entry of the directory.
fn entry() -> Out {
    let mut out = Out::new().u64(FILE).u64(1).u32(4).u32(8);
    out.0.extend(b"disk\0\0\0\0");
    out
}

/// Return the answer to INIT: the features that both sides support.
fn greeting(offered: u32) -> Out {
    const ASYNC_READ: u32 = 1;
    const BIG_WRITES: u32 = 1 << 5;
    const ASYNC_DIO: u32 = 1 << 15;
    const MAX_PAGES: u32 = 1 << 22;
    const BACKGROUND: u16 = 512;
    let flags = offered & (ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES);
    let pages = u16::try_from(MAX_WRITE / 4096).expect("bug: 256 pages");
    let head = Out::new().u32(7).u32(31).u32(0).u32(flags).u16(BACKGROUND).u16(BACKGROUND / 4 * 3);
    (0..8).fold(head.u32(MAX_WRITE).u32(1).u16(pages).u16(0), |out, _| out.u32(0))
}
