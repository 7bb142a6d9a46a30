//! Alignment that `O_DIRECT` requires of lengths, offsets and buffers.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxFlags};

use crate::buffer::ALIGNMENT;

/// Alignment where the kernel does not report one (before Linux 6.1, and on some file systems). A page is sufficient
/// there.
const PAGE: usize = 4096;

/// Required alignment in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Alignment of buffer addresses.
    pub memory: usize,
    /// Alignment of lengths and offsets of writes.
    pub offset: usize,
    /// Alignment of lengths and offsets of reads.
    pub read: usize,
}

/// Return the alignment that an open file requires, read with statx(2). Returns `None` if the file does not support
/// `O_DIRECT`, or requires buffers with a larger alignment than [`ALIGNMENT`].
///
/// # Errors
/// The error of statx(2).
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
