//! The monotonic clock in nanoseconds, and the time that reading it takes.

use rustix::time::{ClockId, clock_gettime};

/// Return `CLOCK_MONOTONIC` in nanoseconds. Reading needs no system call where the vDSO supports the clock source.
#[inline]
pub fn now_ns() -> u64 {
    #[cfg(test)]
    if let Some(now) = fake::now() {
        return now;
    }
    let time = clock_gettime(ClockId::Monotonic);
    #[expect(clippy::cast_sign_loss, reason = "the monotonic clock starts at zero")]
    let (seconds, nanoseconds) = (time.tv_sec as u64, time.tv_nsec as u64);
    seconds * 1_000_000_000 + nanoseconds
}

/// Convert nanoseconds to seconds.
#[inline]
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Return the time of one clock reading in nanoseconds: the minimum of ten averages, because disturbances only increase
/// it.
pub fn overhead_ns() -> f64 {
    const READINGS: u32 = 2_000;
    let average = |_| {
        let start = now_ns();
        for _ in 0..READINGS {
            std::hint::black_box(now_ns());
        }
        (now_ns() - start) as f64 / f64::from(READINGS)
    };
    (0..10).map(average).fold(f64::INFINITY, f64::min)
}

/// A fake clock for tests, one per thread. It advances only by `spend`.
#[cfg(test)]
pub(crate) mod fake {
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(crate) fn now() -> Option<u64> {
        NOW.get()
    }

    /// Replace the clock of this thread by the fake clock.
    pub(crate) fn start() {
        NOW.set(Some(1_000_000_000));
    }

    /// Advance the fake clock; no effect on a thread with the real clock.
    pub(crate) fn spend(nanoseconds: u64) {
        NOW.set(NOW.get().map(|now| now + nanoseconds));
    }
}
