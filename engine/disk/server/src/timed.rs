//! Serving in drive time. One thread takes requests, advances the model, and sends replies at absolute deadlines.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::device::{Device, Reply};
use crate::fuse::{self, Connection, Got, Io};
use crate::{guest, sys, virtio};

/// How often a spinning thread checks for requests, in real nanoseconds.
const LOOK_EVERY: u64 = 1_000;

/// How the thread waits. Times are in real nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// How much later than requested a sleep usually ends.
    pub(crate) overshoot: u64,
    /// Waits shorter than this spin instead of sleeping.
    pub(crate) spin: u64,
}

/// Serve until the connection ends, or without a connection, until the disk ends.
pub(crate) fn serve(
    device: &Arc<Device>,
    connection: Option<&Connection>,
    waiting: Waiting,
) -> io::Result<()> {
    let (mut buffer, mut data) = (fuse::buffer(), vec![0; virtio::MAX_BYTES]);
    let fd = connection.map(Connection::first);
    fd.map_or(Ok(()), sys::set_nonblocking)?;
    device.core().realtime = sys::realtime();
    while fd.is_some() || !device.ended.load(Ordering::Acquire) {
        let mut idle = true;
        for _ in 0..64 {
            let Some(fd) = fd else { break };
            match fuse::receive(fd, &mut buffer, device.size)? {
                Got::Io(unique, io) => take(device, unique, io, &buffer),
                Got::Other => {}
                Got::Nothing => break,
                Got::Ended => return Ok(()),
            }
            idle = false;
        }
        idle &= !device.guest.get().is_some_and(|guest| guest.take(device));
        let remaining = pass_time(device, fd, &mut data)?;
        if idle && !device.core().skip() {
            wait(device, fd, remaining, waiting)?;
        }
    }
    Ok(())
}

fn take(device: &Device, unique: u64, io: Io, buffer: &[u8]) {
    let mut core = device.core();
    if let (Io::Read { offset, length }, true) = (io, device.bypass.load(Ordering::Acquire)) {
        core.replies.push(Reply::Data { unique, offset, length });
        return;
    }
    let data = match io {
        Io::Write { length, data, .. } => &buffer[data..data + length as usize],
        _ => &[],
    };
    core.submit(device, unique, io, data);
}

/// Advance the model to the present and send the replies, unless drive time stands still. Returns the real nanoseconds
/// until the next event.
fn pass_time(device: &Device, fd: Option<BorrowedFd<'_>>, data: &mut [u8]) -> io::Result<Option<u64>> {
    let mut core = device.core();
    if core.clock.is_halted() {
        return Ok(None);
    }
    // A reply takes half a round trip to the client, and the next request takes the other half. Both are subtracted
    // here.
    let ahead = core.clock.scaled(core.ahead);
    let now = core.clock.now();
    core.advance(device, now + ahead);
    let replies = std::mem::take(&mut core.replies);
    let due = core.due().map(|at| core.clock.real(at.saturating_sub(core.clock.now() + ahead)));
    drop(core);
    for reply in &replies {
        match (device.guest.get(), fd) {
            (Some(guest), _) if guest::asked(reply.unique()) => guest.send(device, *reply, data),
            (_, Some(fd)) => send(device, fd, *reply, data)?,
            _ => {}
        }
    }
    Ok(if replies.is_empty() { due } else { Some(0) })
}

fn send(device: &Device, fd: BorrowedFd<'_>, reply: Reply, data: &mut [u8]) -> io::Result<()> {
    match reply {
        Reply::Data { unique, offset, length } => {
            let part = &mut data[..length as usize];
            match device.store.read(offset, part) {
                Ok(()) => fuse::reply(fd, unique, Ok(part)),
                Err(_) => fuse::reply(fd, unique, Err(libc::EIO)),
            }
        }
        Reply::Written { unique, length } => fuse::reply_written(fd, unique, length),
        Reply::Done { unique } => fuse::reply(fd, unique, Ok(&[])),
        Reply::Failed { unique, error } => fuse::reply(fd, unique, Err(error)),
    }
}

/// Spin for this time without system calls: the clients that send requests need the kernel's locks.
fn spin(nanoseconds: u64) {
    let (start, time) = (Instant::now(), Duration::from_nanos(nanoseconds));
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn wait(
    device: &Device,
    fd: Option<BorrowedFd<'_>>,
    remaining: Option<u64>,
    waiting: Waiting,
) -> io::Result<()> {
    let time = match remaining {
        Some(time) if time <= waiting.spin.max(waiting.overshoot) => {
            spin(time.min(LOOK_EVERY));
            return Ok(());
        }
        Some(time) => Some(time - waiting.spin.max(waiting.overshoot)),
        None => None,
    };
    let (wake, kick) = (device.wake.as_fd(), device.guest.get().and_then(|guest| guest.kick()));
    if sys::wait([fd.unwrap_or(wake), wake, kick.as_ref().map_or(wake, |kick| kick.as_fd())], time)?[1] {
        let mut count = [0; 8];
        let _ = sys::read(wake, &mut count);
    }
    Ok(())
}
