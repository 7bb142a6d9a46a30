//! The flowops `read` and `readwholefile`.

use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::program::Flowop;
use fslab_engine::buffer::AlignedBuffer;
use fslab_engine::error::Result;
use fslab_engine::measure::clock::now_ns;
use fslab_engine::sys;

use super::transfer::{LARGEST, Transfer};
use super::worker::{Next, Worker};

/// Bytes that are read to check the end of a file: aligned for direct I/O.
const CHECKED: u64 = 4096;

impl Worker<'_> {
    pub(super) fn read(&mut self, flowop: &Flowop) -> Result<Next> {
        let size = self.io_size(flowop);
        let Some(mut transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        if flowop.with.random {
            return self.read_at_random(flowop, &transfer, size);
        }
        Self::check_size(flowop, &transfer, size)?;
        let piece = self.piece(size, transfer.direct)?;
        let mut start = now_ns();
        let mut read = self.read_piece(&transfer, None, &piece, &mut start);
        if read == Ok(0) && (transfer.position > 0 || transfer.span > 0) {
            // At the end of the file, continue from its start in the same operation.
            (transfer.position, read) = (0, rustix::fs::seek(&transfer.file, SeekFrom::Start(0)));
            if let Some(open) = &mut self.slots.at(transfer.id).open {
                open.position = 0;
            }
            read = read.and_then(|_| self.read_piece(&transfer, None, &piece, &mut start));
        }
        match read {
            Ok(read) => {
                self.record(flowop, start, read);
                self.moved(transfer.id, read);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "read all of", transfer.id, errno),
        }
    }

    fn read_at_random(&mut self, flowop: &Flowop, transfer: &Transfer, size: u64) -> Result<Next> {
        // The working set may be larger than the file, but nothing can be read beyond the end of the file.
        let span = if transfer.size > 0 { transfer.span.min(transfer.size) } else { transfer.span };
        let size = if span > 0 { size.min(transfer.whole(span)) } else { size };
        Self::check_size(flowop, transfer, size)?;
        let (offset, piece) = (self.random_offset(span, size), self.piece(size, transfer.direct)?);
        let mut start = now_ns();
        match self.read_piece(transfer, Some(offset), &piece, &mut start) {
            Ok(read) => {
                self.record(flowop, start, read);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "read all of", transfer.id, errno),
        }
    }

    /// Read a piece from the current file position, or from `offset`. Return the number of bytes, which is less than
    /// the length of the piece at the end of the file. A system call may also return less for other reasons and is then
    /// repeated, but only up to the size that the fileset gives, because the end of the file is known. If the file ends
    /// before that size, call [`check_end`] and move `start` forward by its duration, so that it is not measured.
    fn read_piece(
        &mut self,
        transfer: &Transfer,
        offset: Option<u64>,
        piece: &Range<usize>,
        start: &mut u64,
    ) -> Result<u64, Errno> {
        let from = offset.unwrap_or(transfer.position);
        let (known, buffer) = (transfer.size.saturating_sub(from), &mut self.memory.as_mut()[piece.clone()]);
        let (mut read, wanted) = (0, buffer.len());
        loop {
            let rest = &mut buffer[read..];
            let count = match offset {
                None => sys::read_some(&transfer.file, rest),
                Some(offset) => {
                    sys::retry(|| rustix::io::pread(&transfer.file, &mut *rest, offset + read as u64))
                }
            }?;
            read += count;
            // With O_DIRECT, a partial block is the last one: the next read would have an unaligned offset.
            let part = transfer.direct.is_some_and(|direct| read % direct.offset != 0);
            if count == 0 || part || read == wanted || read as u64 >= known {
                break;
            }
        }
        if (read as u64) < known.min(wanted as u64) {
            let before = now_ns();
            check_end(&transfer.file, offset.map(|offset| offset + read as u64))?;
            *start += now_ns() - before;
        }
        Ok(read as u64)
    }

    pub(super) fn read_whole_file(&mut self, flowop: &Flowop) -> Result<Next> {
        let asked = self.sampler.whole(&flowop.with.size);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        let size = transfer.whole(if asked > 0 { asked } else { transfer.span }.clamp(1, LARGEST));
        let piece = self.piece(size, transfer.direct)?;
        let mut start = now_ns();
        let mut bytes = 0;
        let mut read = rustix::fs::seek(&transfer.file, SeekFrom::Start(0)).map(|_| 1);
        while let Ok(1..) = read {
            read = sys::read_some(&transfer.file, &mut self.memory.as_mut()[piece.clone()]);
            bytes += read.unwrap_or(0) as u64;
            if self.shared.over() {
                self.unfinished(flowop, bytes);
                return Ok(Next::On);
            }
        }
        if bytes < transfer.size && read.is_ok() {
            let before = now_ns();
            read = check_end(&transfer.file, None).map(|()| 0);
            start += now_ns() - before;
        }
        if let Err(errno) = read {
            return self.failed(flowop, "read all of", transfer.id, errno);
        }
        self.record(flowop, start, bytes);
        Ok(Next::On)
    }
}

/// Check that a file ends at its current position or at `offset`, where a read returned no more data. Return ENODATA if
/// its size according to fstat(2) is larger, but pread(2) still returns nothing: the rest of the file is lost. If
/// pread(2) returns data, another thread has extended the file meanwhile, which is not an error.
///
/// The read is aligned, as direct I/O needs it.
fn check_end(file: &OwnedFd, offset: Option<u64>) -> Result<(), Errno> {
    let at = offset.map_or_else(|| rustix::fs::tell(file), Ok)?;
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
    let start = at / CHECKED * CHECKED;
    let mut buffer = AlignedBuffer::new(usize::try_from(CHECKED).unwrap_or(0)).map_err(|_| Errno::NOMEM)?;
    let count = sys::retry(|| rustix::io::pread(file, buffer.as_mut(), start))?;
    if at < size && start + count as u64 <= at { Err(Errno::NODATA) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_that_ends_before_its_size_is_an_error_and_a_short_one_is_none() {
        // The kernel reports a size of 4096 bytes for files in sysfs, but this one has only two.
        let early = File::open("/sys/kernel/fscaps").unwrap();
        let length = early.metadata().unwrap().len();
        assert!(length > 2);
        assert_eq!(check_end(&early.into(), Some(2)), Err(Errno::NODATA));
        let whole = rustix::fs::memfd_create(c"whole", rustix::fs::MemfdFlags::empty()).unwrap();
        sys::write_all(&whole, b"12").unwrap();
        assert_eq!([None, Some(1), Some(2), Some(9)].map(|at| check_end(&whole, at)), [Ok(()); 4]);
    }
}
