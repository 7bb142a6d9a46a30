//! Flowops that read and write.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::contents::BLOCK;
use crate::error::{Context, Error, Result};
use crate::measure::clock::now_ns;
use crate::wml::program::Flowop;

use super::aio::{Request, Which, Writer};
use super::files::SlotId;
use super::worker::{Next, Worker, filled};

/// The largest piece: where a file shall be read at once and is larger, it is read in such pieces.
const LARGEST: u64 = 256 << 20;
/// What `O_DIRECT` wants addresses to be multiples of.
const PAGE: usize = 4096;

/// What to transfer.
struct Transfer {
    file: Arc<OwnedFd>,
    id: SlotId,
    position: u64,
    /// How much of the file is used; 0 if that is not limited.
    span: u64,
    direct: bool,
}

impl Worker<'_> {
    /// The open file of a flowop; `None` if there is no file to open.
    fn transfer(&mut self, flowop: &Flowop) -> Result<Option<Transfer>> {
        let id = self.slot_id(flowop);
        if !self.ensure_open(flowop, id)? {
            return Ok(None);
        }
        let working_set = self.constants[flowop.local].working_set;
        let slot = self.slots.at(id);
        let entry = slot.entry;
        let Some(open) = &slot.open else { return Self::wrong(flowop, "its file is not open") };
        let (file, position, direct) = (Arc::clone(&open.file), open.position, open.direct);
        let size = entry.map_or(0, |(fileset, file)| self.fileset(fileset).size(file));
        let span = if working_set > 0 { working_set } else { size };
        Ok(Some(Transfer { file, id, position, span, direct }))
    }

    fn io_size(&mut self, flowop: &Flowop) -> u64 {
        self.sampler.whole(&flowop.with.size).clamp(1, LARGEST)
    }

    /// A piece of the thread's memory, at random as processors' caches would see it.
    fn piece(&mut self, length: u64, direct: bool) -> Result<Range<usize>> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if self.memory.as_ref().len() < length {
            self.memory = filled(length, self.index as u64)?;
        }
        let places = (self.memory.as_ref().len() / length.max(1)).max(1);
        let place = usize::try_from(self.sampler.own.below(places as u64)).unwrap_or(0);
        let start = place * length;
        let start = if direct { start - start % PAGE } else { start };
        Ok(start..start + length)
    }

    /// Gives a piece of the thread's memory contents that no other piece has had.
    fn refresh(&mut self, piece: Range<usize>) {
        let piece = &mut self.memory.as_mut()[piece];
        self.shared.contents.fill(self.index as u64, self.made, piece);
        self.made += piece.len().div_ceil(BLOCK) as u64;
    }

    /// A piece to be written.
    fn fresh_piece(&mut self, length: u64, direct: bool) -> Result<Range<usize>> {
        let piece = self.piece(length, direct)?;
        self.refresh(piece.clone());
        Ok(piece)
    }

    /// An offset at random: a multiple of the size, so that all of the piece lies within the span.
    fn random_offset(&mut self, span: u64, size: u64) -> u64 {
        self.sampler.own.below((span / size.max(1)).max(1)) * size
    }

    fn failed<T>(&mut self, flowop: &Flowop, action: &'static str, id: SlotId, errno: Errno) -> Result<T> {
        let path = match self.slots.at(id).entry {
            Some((fileset, file)) => self.fileset(fileset).path_of(file),
            None => flowop.label.clone().into(),
        };
        Err(Error::system(action, path, errno))
    }

    pub(super) fn read(&mut self, flowop: &Flowop) -> Result<Next> {
        let size = self.io_size(flowop);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        if flowop.with.random {
            return self.read_at_random(flowop, &transfer, size);
        }
        let piece = self.piece(size, transfer.direct)?;
        let start = now_ns();
        let mut read = retry(|| rustix::io::read(&transfer.file, &mut self.memory.as_mut()[piece.clone()]));
        if read == Ok(0) && transfer.position > 0 || read == Ok(0) && transfer.span > 0 {
            // At the end it goes on from the start, within the same operation.
            read = rustix::fs::seek(&transfer.file, SeekFrom::Start(0)).and_then(|_| {
                retry(|| rustix::io::read(&transfer.file, &mut self.memory.as_mut()[piece.clone()]))
            });
        }
        match read {
            Ok(read) => {
                self.record(flowop, start, read as u64);
                self.moved(transfer.id, read as u64);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "read", transfer.id, errno),
        }
    }

    fn read_at_random(&mut self, flowop: &Flowop, transfer: &Transfer, size: u64) -> Result<Next> {
        // What lies behind the end of the file cannot be read, however large the working set is.
        let file_size = self.slots.at(transfer.id).entry.map(|(set, file)| self.fileset(set).size(file));
        let span = file_size.filter(|size| *size > 0).map_or(transfer.span, |size| transfer.span.min(size));
        let size = if span > 0 { size.min(span) } else { size };
        let (offset, piece) = (self.random_offset(span, size), self.piece(size, transfer.direct)?);
        let start = now_ns();
        let read =
            retry(|| rustix::io::pread(&transfer.file, &mut self.memory.as_mut()[piece.clone()], offset));
        match read {
            Ok(read) => {
                self.record(flowop, start, read as u64);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "read", transfer.id, errno),
        }
    }

    pub(super) fn write(&mut self, flowop: &Flowop) -> Result<Next> {
        let size = self.io_size(flowop);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        let piece = self.fresh_piece(size, transfer.direct)?;
        if flowop.with.random {
            let offset = self.random_offset(transfer.span, size);
            let start = now_ns();
            return match write_at(&transfer.file, &self.memory.as_ref()[piece], offset) {
                Ok(()) => {
                    self.record(flowop, start, size);
                    Ok(Next::On)
                }
                Err(errno) => self.failed(flowop, "write", transfer.id, errno),
            };
        }
        // A file does not grow beyond its size or the working set: it is written again from the start.
        let again = transfer.span > 0 && transfer.position > 0 && transfer.position + size > transfer.span;
        let start = now_ns();
        let mut written = Ok(());
        if again {
            written = rustix::fs::seek(&transfer.file, SeekFrom::Start(0)).map(|_| ());
            if let Some(open) = &mut self.slots.at(transfer.id).open {
                open.position = 0;
            }
        }
        match written.and_then(|()| crate::sys::write_all(&transfer.file, &self.memory.as_ref()[piece])) {
            Ok(()) => {
                self.record(flowop, start, size);
                self.moved(transfer.id, size);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "write", transfer.id, errno),
        }
    }

    fn moved(&mut self, id: SlotId, bytes: u64) {
        if let Some(open) = &mut self.slots.at(id).open {
            open.position += bytes;
        }
    }

    pub(super) fn read_whole_file(&mut self, flowop: &Flowop) -> Result<Next> {
        let asked = self.sampler.whole(&flowop.with.size);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        let size = if asked > 0 { asked } else { transfer.span }.clamp(1, LARGEST);
        let size = if transfer.direct { size.next_multiple_of(PAGE as u64) } else { size };
        let piece = self.piece(size, transfer.direct)?;
        let start = now_ns();
        let mut bytes = 0;
        let mut read = rustix::fs::seek(&transfer.file, SeekFrom::Start(0)).map(|_| 1);
        while let Ok(1..) = read {
            read = retry(|| rustix::io::read(&transfer.file, &mut self.memory.as_mut()[piece.clone()]));
            bytes += read.unwrap_or(0) as u64;
            if self.shared.over() {
                self.unfinished(flowop, bytes);
                return Ok(Next::On);
            }
        }
        if let Err(errno) = read {
            return self.failed(flowop, "read", transfer.id, errno);
        }
        self.record(flowop, start, bytes);
        Ok(Next::On)
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
        let size = if asked > 0 { asked } else { total }.clamp(1, LARGEST);
        let piece = self.piece(size, transfer.direct)?;
        let mut start = now_ns();
        let mut left = total;
        while left > 0 {
            // Making contents is the engine's own work.
            let making = now_ns();
            self.refresh(piece.clone());
            start += now_ns() - making;
            let length = usize::try_from(left.min(size)).unwrap_or(piece.len());
            // O_DIRECT writes whole pages; the last one may reach beyond the file's size.
            let length =
                if transfer.direct { length.next_multiple_of(PAGE).min(piece.len()) } else { length };
            let data = &self.memory.as_ref()[piece.start..piece.start + length];
            if let Err(errno) = crate::sys::write_all(&transfer.file, data) {
                return self.failed(flowop, "write", transfer.id, errno);
            }
            left = left.saturating_sub(length as u64);
            if left > 0 && self.shared.over() {
                self.unfinished(flowop, total - left);
                return Ok(Next::On);
            }
        }
        self.record(flowop, start, total);
        Ok(Next::On)
    }

    /// Appends a piece; with `any` its size is drawn from 1 to the I/O size.
    pub(super) fn append(&mut self, flowop: &Flowop, any: bool) -> Result<Next> {
        let most = self.io_size(flowop);
        let size = if any { 1 + self.sampler.own.below(most) } else { most };
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        let piece = self.fresh_piece(size, transfer.direct)?;
        let start = now_ns();
        let written = rustix::fs::seek(&transfer.file, SeekFrom::End(0))
            .and_then(|_| crate::sys::write_all(&transfer.file, &self.memory.as_ref()[piece]));
        match written {
            Ok(()) => {
                self.record(flowop, start, size);
                Ok(Next::On)
            }
            Err(errno) => self.failed(flowop, "append to", transfer.id, errno),
        }
    }

    pub(super) fn aio_write(&mut self, flowop: &Flowop) -> Result<Next> {
        let size = self.io_size(flowop);
        let Some(transfer) = self.transfer(flowop)? else { return Ok(Next::NoFile) };
        let offset = self.random_offset(transfer.span, size);
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        if self.aio.as_ref().is_none_or(|aio| aio.longest() < length) {
            self.drain().context("write", || flowop.label.clone())?;
            self.aio = Writer::new(length, &self.shared.contents, self.index as u64)?;
        }
        let Some(aio) = &self.aio else { return Self::wrong(flowop, "no helper threads can be started") };
        let which = Which { local: flowop.local, info: flowop.info, kind: flowop.kind, late: self.late };
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

/// Calls again what a signal has interrupted.
fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

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
