//! Reading a file that is named by somebody else: only a regular one, and of a text a bounded length.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Context;
use crate::{Error, Result};

/// How long a text may be, in bytes.
const LONGEST: u64 = 16 << 20;

/// Opens a regular file for reading.
///
/// # Errors
/// If it cannot be opened, or is not regular: a pipe or a device may never end, or let its reader wait.
pub fn open(path: &Path) -> Result<File> {
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let descriptor = opened.context("open", || path)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&descriptor).context("stat", || path)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
    }
    Ok(File::from(descriptor))
}

/// The text of a regular file.
///
/// # Errors
/// If it cannot be opened or read, is not UTF-8, or is longer than 16 MiB.
pub fn read(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).context("read", || path)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Error::Invalid(format!("{} is larger than {} MiB", path.display(), LONGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Errno::ILSEQ).context("read", || path)
}
