//! What `O_DIRECT` asks of lengths, offsets and buffers.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxFlags};

use crate::buffer::ALIGNMENT;

/// Linux before 6.1 and some file systems do not tell; a page has then always been enough.
const PAGE: usize = 4096;

/// What they have to be multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Addresses of buffers.
    pub memory: usize,
    /// Lengths and offsets of whatever is written.
    pub offset: usize,
    /// Those of what is read.
    pub read: usize,
}

/// What an open file asks for; `None` if it cannot be read and written past the page cache, or only with
/// buffers that nobody has.
///
/// # Errors
/// If the file cannot be looked at.
pub fn alignment(file: impl AsFd) -> rustix::io::Result<Option<Alignment>> {
    let told = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    if told.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Ok(Some(Alignment { memory: PAGE, offset: PAGE, read: PAGE }));
    }
    let (memory, offset) = (told.stx_dio_mem_align as usize, told.stx_dio_offset_align as usize);
    let read =
        if told.stx_dio_read_offset_align > 0 { told.stx_dio_read_offset_align as usize } else { offset };
    Ok((offset > 0 && memory > 0 && memory <= ALIGNMENT).then_some(Alignment { memory, offset, read }))
}
