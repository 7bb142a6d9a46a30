//! Reading of files that the user names: regular files only, and texts of limited size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Context;
use crate::{Error, Result};

/// Maximum size of a text in bytes.
const LONGEST: u64 = 16 << 20;

/// Open a regular file for reading.
///
/// # Errors
/// If the file cannot be opened; kind `invalid` if it is not regular, because a pipe or a device may block or never
/// end.
pub fn open(path: &Path) -> Result<File> {
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let descriptor = opened.context("open", || path)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&descriptor).context("stat", || path)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
    }
    Ok(File::from(descriptor))
}

/// Read a regular file as text.
///
/// # Errors
/// If the file cannot be opened or read, is not regular, is not UTF-8, or is larger than 16 MiB.
pub fn read(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).context("read", || path)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Error::Invalid(format!("{} is larger than {} MiB", path.display(), LONGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Errno::ILSEQ).context("read", || path)
}
