//! The stop request: set by a signal handler, checked before each file.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Error, Result};

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Request that all work stops because of this signal. Async-signal-safe.
pub fn request(signal: i32) {
    SIGNAL.store(signal, Ordering::Relaxed);
}

/// Return the signal that requested the stop; `None` if there was none.
pub fn requested() -> Option<i32> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Return [`Error::Interrupted`] if a stop was requested.
#[inline]
pub fn check() -> Result<()> {
    match requested() {
        None => Ok(()),
        Some(signal) => Err(Error::Interrupted(signal)),
    }
}
