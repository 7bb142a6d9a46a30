//! The request to stop: set by a signal handler, looked at between any two files.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Error, Result};

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Asks all work to end, because of this signal. Safe to call from a signal handler.
pub fn request(signal: i32) {
    SIGNAL.store(signal, Ordering::Relaxed);
}

/// The signal that asked for the end, if one did.
pub fn requested() -> Option<i32> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Fails once the end was asked for.
#[inline]
pub fn check() -> Result<()> {
    match requested() {
        None => Ok(()),
        Some(signal) => Err(Error::Interrupted(signal)),
    }
}
