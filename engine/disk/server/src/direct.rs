//! Serving without a model, as fast as the machine can: several threads, each with its own descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fslab_disk_model::SECTOR;
use fslab_disk_model::drive::{Op, Request};
use fslab_disk_model::fault::Fate;

use crate::device::{Device, place, request};
use crate::fuse::{self, Got, Io};
use crate::gate::Stop;

/// Serve until the connection ends.
pub(crate) fn serve(device: &Arc<Device>, fd: &OwnedFd) -> io::Result<()> {
    let (mut buffer, mut data) = (fuse::buffer(), fuse::buffer());
    let fd = fd.as_fd();
    loop {
        match fuse::receive(fd, &mut buffer, device.size)? {
            Got::Io(unique, io) => answer(device, fd, unique, io, &buffer, &mut data)?,
            Got::Other | Got::Nothing => {}
            Got::Ended => return Ok(()),
        }
    }
}

fn answer(
    device: &Device,
    fd: BorrowedFd<'_>,
    unique: u64,
    io: Io,
    buffer: &[u8],
    data: &mut [u8],
) -> io::Result<()> {
    let request = request(0, io);
    let bytes = place(io).1;
    let fate = match pass(device, &request) {
        Ok(fate) => fate,
        Err(error) => return fuse::reply(fd, unique, Err(error)),
    };
    let error = match io {
        _ if fate.ignored => None,
        Io::Read { offset, length } => {
            let part = &mut data[..length as usize];
            let flipped = fate.flip.and_then(|bit| device.flip(request.sector * SECTOR, bit));
            flipped.or(device.store.read(offset, part).err().map(|_| libc::EIO))
        }
        Io::Write { offset, length, data: at } => {
            device.put(offset, &fate, &buffer[at..at + length as usize])
        }
        Io::Discard { offset, length } | Io::Zero { offset, length } => {
            device.store.punch(offset, length).err().map(|_| libc::EIO)
        }
        Io::Flush => None,
    };
    device.counters.count(request.op, bytes, error.is_some());
    match (error, io) {
        (Some(error), _) => fuse::reply(fd, unique, Err(error)),
        (None, Io::Read { length, .. }) => fuse::reply(fd, unique, Ok(&data[..length as usize])),
        (None, Io::Write { length, .. }) => fuse::reply_written(fd, unique, length),
        (None, Io::Flush | Io::Discard { .. } | Io::Zero { .. }) => fuse::reply(fd, unique, Ok(&[])),
    }
}

/// Apply power, cut and faults if any of them may affect the request. Returns an error number if the request fails.
fn pass(device: &Device, request: &Request) -> Result<Fate, i32> {
    if !device.watchful.load(Ordering::Acquire) {
        return Ok(Fate::default());
    }
    let mut core = device.core();
    let now = core.clock.now();
    let fate = core.gate.pass(now, request);
    if fate == Err(Stop::CutNow) {
        core.cut(device);
    }
    match fate {
        Ok(fate) if !fate.error => Ok(fate),
        _ => {
            device.counters.count(request.op, 0, true);
            Err(libc::EIO)
        }
    }
}

/// Return the error message for a `stuck` fault: without deadlines, requests cannot be delayed.
pub(crate) fn refuses_delay(op: Option<Op>) -> String {
    let which = op.map_or("requests", |op| crate::statistics::NAMES[op as usize]);
    format!("cannot delay {which} without a model: start the server with --timed")
}
