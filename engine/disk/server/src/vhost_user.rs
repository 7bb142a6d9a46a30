//! The part of the vhost-user protocol that a block device with one queue needs: messages with descriptors over a Unix
//! socket.
//!
//! Sources: QEMU, docs/interop/vhost-user.rst; drivers: `arch/um/drivers/virtio_uml.c`, QEMU's `vhost-user.c`.
//! User-Mode Linux sends its memory table with space for two regions, whatever their number. The crate `vhost` rejects
//! that. This module must not depend on the virtio device: `guest` interprets the messages.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::little_endian::{u32_at, u64_at};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

const HEADER: usize = 12;
const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;
const MAX_PAYLOAD: usize = 4096;
const MAX_FDS: usize = 8;
const REGION: usize = 32;
const CONFIG_HEADER: usize = 12;
const NO_FD: u64 = 1 << 8;

/// The device feature bit that enables the features of this protocol.
pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;
/// Protocol features: `REPLY_ACK`, `BACKEND_REQ`, `CONFIG`. Without `BACKEND_REQ`, User-Mode Linux has no interrupt for
/// a queue.
pub(crate) const UNDERSTOOD: u64 = 1 << 3 | 1 << 5 | 1 << 9;

/// A region of the guest's memory: guest address, size, address in the front-end, and offset in a file.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) guest: u64,
    pub(crate) bytes: u64,
    pub(crate) user: u64,
    pub(crate) offset: u64,
    pub(crate) file: OwnedFd,
}

/// A message of the front-end. A message about a queue has the queue's number first.
#[derive(Debug)]
pub(crate) enum Message {
    GetFeatures,
    SetFeatures(u64),
    SetMemTable(Vec<Region>),
    SetVringNum(u32, u32),
    /// Addresses in the front-end of the queue's descriptors, used ring and available ring.
    SetVringAddr(u32, [u64; 3]),
    SetVringBase(u32, u32),
    GetVringBase(u32),
    SetVringKick(u32, Option<OwnedFd>),
    SetVringCall(u32, Option<OwnedFd>),
    SetVringEnable(u32, bool),
    GetProtocolFeatures,
    GetQueueNum,
    /// A socket for requests to the front-end. It is not used, but stays open while the guest is connected.
    SetBackendReqFd(Option<OwnedFd>),
    /// First byte and number of bytes.
    GetConfig(usize, usize),
    /// A message without effect in this program.
    Nothing,
}

/// A message, with the data that its answer must repeat.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) message: Message,
    request: u32,
    acknowledge: bool,
    payload: Vec<u8>,
}

/// Receive the next message; `None` if the front-end has disconnected.
pub(crate) fn receive(stream: &UnixStream) -> io::Result<Option<Received>> {
    let mut header = [0; HEADER];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let got =
        recvmsg(stream.as_fd(), &mut [IoSliceMut::new(&mut header)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        })
        .flatten()
        .collect();
    if got.bytes == 0 {
        return Ok(None);
    }
    let mut stream = stream;
    stream.read_exact(&mut header[got.bytes..])?;
    let [request, flags, size] = [0, 4, 8].map(|at| u32_at(&header, at).expect("bug: twelve bytes"));
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if flags & 3 != VERSION || size > MAX_PAYLOAD {
        return Err(invalid());
    }
    let mut payload = vec![0; size];
    stream.read_exact(&mut payload)?;
    let message = parsed(request, &payload, files).ok_or_else(invalid)?;
    Ok(Some(Received { message, request, acknowledge: flags & NEED_REPLY != 0, payload }))
}

impl Received {
    /// Answer with a number.
    pub(crate) fn answer_number(&self, stream: &UnixStream, value: u64) -> io::Result<()> {
        self.answer(stream, &value.to_le_bytes())
    }

    /// Answer with the position of a queue.
    pub(crate) fn answer_base(&self, stream: &UnixStream, queue: u32, base: u32) -> io::Result<()> {
        self.answer(stream, &[queue.to_le_bytes(), base.to_le_bytes()].concat())
    }

    /// Answer with a part of the configuration.
    pub(crate) fn answer_configuration(&self, stream: &UnixStream, part: &[u8]) -> io::Result<()> {
        let mut payload = self.payload.clone();
        payload[CONFIG_HEADER..CONFIG_HEADER + part.len()].copy_from_slice(part);
        self.answer(stream, &payload)
    }

    /// Report success or failure, if the message requested it.
    pub(crate) fn acknowledge(&self, stream: &UnixStream, done: bool) -> io::Result<()> {
        if self.acknowledge { self.answer_number(stream, (!done).into()) } else { Ok(()) }
    }

    fn answer(&self, mut stream: &UnixStream, payload: &[u8]) -> io::Result<()> {
        let size = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let header = [self.request, VERSION | REPLY, size].map(u32::to_le_bytes).concat();
        stream.write_all(&[&header, payload].concat())
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "invalid vhost-user message")
}

fn parsed(request: u32, payload: &[u8], mut files: Vec<OwnedFd>) -> Option<Message> {
    let pair = || Some((u32_at(payload, 0)?, u32_at(payload, 4)?));
    let queue = || u64_at(payload, 0).and_then(|value| u32::try_from(value & 0xff).ok());
    let mut file = || {
        let expected = u64_at(payload, 0)? & NO_FD == 0;
        (expected != files.is_empty()).then(|| files.pop())
    };
    Some(match request {
        1 => Message::GetFeatures,
        2 => Message::SetFeatures(u64_at(payload, 0)?),
        5 => Message::SetMemTable(regions(payload, files)?),
        8 => pair().map(|(queue, size)| Message::SetVringNum(queue, size))?,
        9 => {
            let addresses = [u64_at(payload, 8)?, u64_at(payload, 16)?, u64_at(payload, 24)?];
            Message::SetVringAddr(u32_at(payload, 0)?, addresses)
        }
        10 => pair().map(|(queue, base)| Message::SetVringBase(queue, base))?,
        11 => Message::GetVringBase(u32_at(payload, 0)?),
        12 => Message::SetVringKick(queue()?, file()?),
        13 => Message::SetVringCall(queue()?, file()?),
        15 => Message::GetProtocolFeatures,
        17 => Message::GetQueueNum,
        18 => pair().map(|(queue, enabled)| Message::SetVringEnable(queue, enabled != 0))?,
        21 => Message::SetBackendReqFd(files.pop()),
        24 => {
            let [offset, size] = [u32_at(payload, 0)?, u32_at(payload, 4)?].map(|value| value as usize);
            (payload.len() == CONFIG_HEADER + size).then_some(Message::GetConfig(offset, size))?
        }
        // Owner, protocol features, logging, error descriptor of the queue, writes to the configuration.
        3 | 4 | 6 | 7 | 14 | 16 | 25 => Message::Nothing,
        _ => return None,
    })
}

fn regions(payload: &[u8], files: Vec<OwnedFd>) -> Option<Vec<Region>> {
    let count = u32_at(payload, 0)? as usize;
    if count == 0 || count != files.len() {
        return None;
    }
    let region = |(index, file): (usize, OwnedFd)| {
        let at = 8 + index * REGION;
        Some(Region {
            guest: u64_at(payload, at)?,
            bytes: u64_at(payload, at + 8)?,
            user: u64_at(payload, at + 16)?,
            offset: u64_at(payload, at + 24)?,
            file,
        })
    };
    files.into_iter().enumerate().map(region).collect()
}
