//! The data and ranges of reads and writes, and the flowops that write.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::program::Flowop;
use fslab_engine::contents::BLOCK;
use fslab_engine::direct::Alignment;
use fslab_engine::error::{Context, Error, Result};
use fslab_engine::measure::clock::now_ns;

use super::aio::{Request, Writer};
use super::slots::SlotId;
use super::worker::{Next, Worker, filled};

/// Maximum number of bytes that a flowop reads or writes at once; larger I/O sizes are reduced to it. `readwholefile`
/// and `writewholefile` transfer larger files in pieces of this size.
pub(super) const LARGEST: u64 = 256 << 20;

/// The file that a flowop reads or writes.
pub(super) struct Transfer {
    pub(super) file: Arc<OwnedFd>,
    pub(super) id: SlotId,
    /// Offset of the next sequential `read` or `write`, in bytes.
    pub(super) position: u64,
    /// Number of bytes at the start of the file that are used: the working set, or else the size; 0 if unlimited.
    pub(super) span: u64,
    /// Size of the file according to its fileset, in bytes; 0 if unknown.
    pub(super) size: u64,
    pub(super) direct: Option<Alignment>,
    /// Whether the file was opened with `O_SYNC`.
    pub(super) synced: bool,
}

impl Transfer {
    /// Round the length up to a multiple that `O_DIRECT` accepts. Without `O_DIRECT`, return it unchanged.
    pub(super) fn whole(&self, length: u64) -> u64 {
        self.direct.map_or(length, |direct| length.next_multiple_of(direct.offset as u64))
    }
}

impl Worker<'_> {
    /// Return the file of a flowop; open it if it is not open. Return `None` if there is no file to open.
    pub(super) fn transfer(&mut self, flowop: &Flowop) -> Result<Option<Transfer>> {
        let id = self.slot_id(flowop);
        if !self.ensure_open(flowop, id)? {
            return Ok(None);
        }
        let working_set = self.constants[flowop.local].working_set;
        let slot = self.slots.at(id);
        let entry = slot.entry;
        let Some(open) = &slot.open else { return Self::wrong(flowop, "its file is not open") };
        let (file, position) = (Arc::clone(&open.file), open.position);
        let (direct, synced) = (open.direct, open.opening.dsync);
        let size = entry.map_or(0, |(fileset, file)| self.fileset(fileset).size(file));
        let span = if working_set > 0 { working_set } else { size };
        Ok(Some(Transfer { file, id, position, span, size, direct, synced }))
    }

    pub(super) fn io_size(&mut self, flowop: &Flowop) -> u64 {
        self.sampler.whole(&flowop.with.size).clamp(1, LARGEST)
    }

    /// Return an error if the file was opened with `O_DIRECT` and this size is not a multiple that it accepts.
    pub(super) fn check_size(flowop: &Flowop, transfer: &Transfer, size: u64) -> Result<()> {
        match transfer.direct {
            Some(direct) if size % direct.offset as u64 != 0 => {
                let of = direct.offset;
                let message = format!(
                    "with directio, its iosize must be a multiple of {of} bytes on this file system, not {size}"
                );
                Self::wrong(flowop, &message)
            }
            _ => Ok(()),
        }
    }

    /// Return a random piece of the thread's memory, so that processor caches do not serve the same piece each time.
    /// Enlarge the memory if it is smaller than the piece. The start is aligned for `O_DIRECT` if necessary.
    pub(super) fn piece(&mut self, length: u64, direct: Option<Alignment>) -> Result<Range<usize>> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if self.memory.as_ref().len() < length {
            self.memory = filled(length, self.index as u64)?;
        }
        let places = (self.memory.as_ref().len() / length.max(1)).max(1);
        let place = usize::try_from(self.sampler.own.below(places as u64)).unwrap_or(0);
        let start = place * length;
        let start = start - direct.map_or(0, |direct| start % direct.memory);
        Ok(start..start + length)
    }

    /// Fill a piece of the thread's memory with new contents, which this thread has not generated before.
    fn refresh(&mut self, piece: Range<usize>) {
        let piece = &mut self.memory.as_mut()[piece];
        self.shared.contents.fill(self.index as u64, self.made, piece);
        self.made += piece.len().div_ceil(BLOCK) as u64;
    }

    /// Return a piece of the thread's memory with new contents, for a write.
    fn fresh_piece(&mut self, length: u64, direct: Option<Alignment>) -> Result<Range<usize>> {
        let piece = self.piece(length, direct)?;
        self.refresh(piece.clone());
        Ok(piece)
    }

    /// Return a random offset: a multiple of `size` such that the piece ends within the span, or 0 if the span is
    /// smaller than the piece.
    pub(super) fn random_offset(&mut self, span: u64, size: u64) -> u64 {
        self.sampler.own.below((span / size.max(1)).max(1)) * size
    }

    /// Return an error with the path of the slot's file.
    pub(super) fn failed<T>(
        &mut self,
        flowop: &Flowop,
        action: &'static str,
        id: SlotId,
        errno: Errno,
    ) -> Result<T> {
        let path = match self.slots.at(id).entry {
            Some((fileset, file)) => self.fileset(fileset).path_of(file),
            None => flowop.label.clone().into(),
        };
        Err(Error::system(action, path, errno))
    }

    pub(super) fn write(&mut self, flowop: &Flowop) -> Result<Next> {
        let size = self.io_size(flowop);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        Self::check_size(flowop, &transfer, size)?;
        let piece = self.fresh_piece(size, transfer.direct)?;
        if flowop.with.random {
            let offset = self.random_offset(transfer.span, size);
            let start = now_ns();
            return match write_at(&transfer.file, &self.memory.as_ref()[piece], offset) {
                Ok(()) => {
                    self.record_write(flowop, &transfer, start, size);
                    Ok(Next::On)
                }
                Err(errno) => self.failed(flowop, "write", transfer.id, errno),
            };
        }
        // Do not write beyond the size of the file or the working set: continue at the start of the file.
        let again = transfer.span > 0 && transfer.position > 0 && transfer.position + size > transfer.span;
        let start = now_ns();
        let mut written = Ok(());
        if again {
            written = rustix::fs::seek(&transfer.file, SeekFrom::Start(0)).map(|_| ());
            if let Some(open) = &mut self.slots.at(transfer.id).open {
                open.position = 0;
            }
        }
        match written
            .and_then(|()| fslab_engine::sys::write_all(&transfer.file, &self.memory.as_ref()[piece]))
        {
            Ok(()) => {
                self.record_write(flowop, &transfer, start, size);
                self.moved(transfer.id, size);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "write", transfer.id, errno),
        }
    }

    pub(super) fn moved(&mut self, id: SlotId, bytes: u64) {
        if let Some(open) = &mut self.slots.at(id).open {
            open.position += bytes;
        }
    }

    pub(super) fn write_whole_file(&mut self, flowop: &Flowop) -> Result<Next> {
        let asked = self.sampler.whole(&flowop.with.size);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        let source = match flowop.with.source_fd {
            0 => None,
            number => match self.slots.at(SlotId::Numbered(number)).entry {
                None => return Self::wrong(flowop, "its srcfd has no file"),
                entry => entry,
            },
        };
        let total = source.map_or(transfer.span, |(fileset, file)| self.fileset(fileset).size(file));
        let size = transfer.whole(if asked > 0 { asked } else { total }.clamp(1, LARGEST));
        let piece = self.piece(size, transfer.direct)?;
        let mut start = now_ns();
        let mut left = total;
        while left > 0 {
            // Generating contents is not part of the operation: exclude its time.
            let making = now_ns();
            self.refresh(piece.clone());
            start += now_ns() - making;
            // O_DIRECT writes only whole blocks; the last one may extend beyond the size of the file.
            let length = usize::try_from(transfer.whole(left.min(size))).unwrap_or(piece.len());
            let data = &self.memory.as_ref()[piece.start..piece.start + length];
            if let Err(errno) = fslab_engine::sys::write_all(&transfer.file, data) {
                return self.failed(flowop, "write", transfer.id, errno);
            }
            left = left.saturating_sub(length as u64);
            if left > 0 && self.shared.over() {
                self.unfinished(flowop, total - left);
                return Ok(Next::On);
            }
        }
        self.record_write(flowop, &transfer, start, total);
        Ok(Next::On)
    }

    /// Append a piece of the I/O size. With `any`, its size is random, from 1 byte to the I/O size.
    pub(super) fn append(&mut self, flowop: &Flowop, any: bool) -> Result<Next> {
        let most = self.io_size(flowop);
        let size = if any { 1 + self.sampler.own.below(most) } else { most };
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        let size = if any { transfer.whole(size) } else { size };
        Self::check_size(flowop, &transfer, size)?;
        let piece = self.fresh_piece(size, transfer.direct)?;
        let start = now_ns();
        let written = rustix::fs::seek(&transfer.file, SeekFrom::End(0))
            .and_then(|_| fslab_engine::sys::write_all(&transfer.file, &self.memory.as_ref()[piece]));
        match written {
            Ok(()) => {
                self.record_write(flowop, &transfer, start, size);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "append to", transfer.id, errno),
        }
    }

    pub(super) fn aio_write(&mut self, flowop: &Flowop) -> Result<Next> {
        let size = self.io_size(flowop);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        Self::check_size(flowop, &transfer, size)?;
        let offset = self.random_offset(transfer.span, size);
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        if self.aio.as_ref().is_none_or(|aio| aio.longest() < length) {
            self.drain().context("write", || flowop.label.clone())?;
            // New helpers have new identities: else they would write the blocks of the former ones again.
            self.aio_writers += 1;
            let identity = self.aio_writers << 32 | self.index as u64;
            self.aio = Writer::new(length, &self.shared.contents, identity)?;
        }
        let Some(aio) = &self.aio else { return Self::wrong(flowop, "cannot start its helper threads") };
        let which = self.which(flowop, transfer.synced);
        let request = Request { which, file: transfer.file, offset, length, asked: now_ns() };
        aio.write(request, || self.shared.over());
        self.count_completed().context("write", || flowop.label.clone())?;
        Ok(Next::On)
    }

    pub(super) fn aio_wait(&mut self, flowop: &Flowop) -> Result<Next> {
        let start = now_ns();
        if let Some(aio) = &self.aio {
            aio.wait(|| self.shared.over());
        }
        self.record(flowop, start, 0);
        self.count_completed().context("write", || flowop.label.clone())?;
        Ok(Next::On)
    }
}

/// Write all of `data` at `offset` with pwrite(2). Return EIO if a call writes nothing.
pub(super) fn write_at(file: &OwnedFd, mut data: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !data.is_empty() {
        match rustix::io::pwrite(file, data, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                offset += written as u64;
                data = &data[written..];
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
