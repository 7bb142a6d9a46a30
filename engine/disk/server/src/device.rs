//! The disk that all threads share, and the conversion of I/O requests for it. It must not parse FUSE messages or start
//! threads.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use fslab_disk_model::SECTOR;
use fslab_disk_model::drive::{Op, Request};
use fslab_disk_model::fault::Fate;
use fslab_disk_model::store::Store;

use crate::core::Core;
use crate::fuse::Io;
use crate::guest::Guest;
use crate::statistics::Counters;

/// The state that all threads share.
pub(crate) struct Device {
    pub(crate) size: u64,
    pub(crate) store: Store,
    pub(crate) counters: Counters,
    core: Mutex<Core>,
    /// Whether requests must pass the core's gate, because power, a cut or a fault may affect them.
    pub(crate) watchful: AtomicBool,
    /// Whether reads are answered at once, for calibration.
    pub(crate) bypass: AtomicBool,
    /// Event that wakes the serving thread.
    pub(crate) wake: OwnedFd,
    /// Whether one thread serves in drive time.
    pub(crate) timed: bool,
    /// Whether serving has ended.
    pub(crate) ended: AtomicBool,
    /// The guest interface, once the disk is offered.
    pub(crate) guest: OnceLock<Arc<Guest>>,
}

/// A reply to send.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Data { unique: u64, offset: u64, length: u32 },
    Written { unique: u64, length: u32 },
    Done { unique: u64 },
    Failed { unique: u64, error: i32 },
}

impl Reply {
    /// Return the number of the request.
    pub(crate) fn unique(self) -> u64 {
        match self {
            Self::Data { unique, .. }
            | Self::Written { unique, .. }
            | Self::Done { unique }
            | Self::Failed { unique, .. } => unique,
        }
    }
}

impl Device {
    pub(crate) fn new(size: u64, store: Store, core: Core, wake: OwnedFd, timed: bool) -> Self {
        Self {
            size,
            store,
            counters: Counters::default(),
            core: Mutex::new(core),
            watchful: AtomicBool::new(false),
            bypass: AtomicBool::new(false),
            wake,
            timed,
            ended: AtomicBool::new(false),
            guest: OnceLock::new(),
        }
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Update `watchful` after a change of the gate.
    pub(crate) fn look_again(&self, core: &Core) {
        self.watchful.store(!core.gate.idle(), Ordering::SeqCst);
    }

    /// Store the data of a write as far as its faults allow. Returns an error number on failure.
    pub(crate) fn put(&self, offset: u64, fate: &Fate, data: &[u8]) -> Option<i32> {
        let done = self.store.write(offset, &fate.stores(offset, data));
        done.err().map(|_| {
            self.counters.no_space.fetch_add(1, Ordering::Relaxed);
            libc::ENOSPC
        })
    }

    /// Flip a stored bit permanently. Returns an error number on failure.
    pub(crate) fn flip(&self, offset: u64, bit: u64) -> Option<i32> {
        let mut byte = [0];
        let at = offset + bit / 8;
        let done = self.store.read(at, &mut byte).and_then(|()| {
            byte[0] ^= 1 << (bit % 8);
            self.store.write(at, &byte)
        });
        done.err().map(|_| libc::EIO)
    }
}

/// Return the first byte and the length in bytes. A loop device sends whole sectors; a guest that uses the file
/// directly may not.
pub(crate) fn place(io: Io) -> (u64, u64) {
    match io {
        Io::Read { offset, length } | Io::Write { offset, length, .. } => (offset, u64::from(length)),
        Io::Flush => (0, 0),
        Io::Discard { offset, length } | Io::Zero { offset, length } => (offset, length),
    }
}

/// Convert an I/O request to a request to the drive, in whole sectors.
pub(crate) fn request(id: u64, io: Io) -> Request {
    let op = match io {
        Io::Read { .. } => Op::Read,
        Io::Write { .. } => Op::Write,
        Io::Flush => Op::Flush,
        Io::Discard { .. } | Io::Zero { .. } => Op::Discard,
    };
    let (offset, length) = place(io);
    let sector = offset / SECTOR;
    Request { id, op, sector, sectors: (offset + length).div_ceil(SECTOR) - sector }
}
