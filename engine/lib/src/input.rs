//! Reading a file that says what to do: of a known kind and a bounded length.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Context;
use crate::{Error, Result};

/// How long it may be, in bytes.
const LONGEST: u64 = 16 << 20;

/// The text of a regular file.
///
/// # Errors
/// If it cannot be read, is not regular (a pipe or a device may never end), is not UTF-8, or is longer than 16 MiB.
pub fn read(path: &Path) -> Result<String> {
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let descriptor = opened.context("open", || path)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&descriptor).context("stat", || path)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
    }
    let mut bytes = Vec::new();
    let read = File::from(descriptor).take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).context("read", || path)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Error::Invalid(format!("{} is longer than {} MiB", path.display(), LONGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Errno::ILSEQ).context("read", || path)
}
