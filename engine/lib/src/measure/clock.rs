//! The monotonic clock in nanoseconds, and what one reading of it costs.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock, read without a system call where the vDSO allows.
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

/// Nanoseconds as seconds.
#[inline]
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// What one reading of the clock costs, in nanoseconds: the quickest of several averages, because
/// whatever disturbs a run only ever makes it longer.
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

/// A clock that a test sets, for the thread that it runs on: it stands still but for what is spent.
#[cfg(test)]
pub(crate) mod fake {
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(crate) fn now() -> Option<u64> {
        NOW.get()
    }

    /// From now on this thread has the fake clock.
    pub(crate) fn start() {
        NOW.set(Some(1_000_000_000));
    }

    /// Lets time pass; nothing where the clock is the real one.
    pub(crate) fn spend(nanoseconds: u64) {
        NOW.set(NOW.get().map(|now| now + nanoseconds));
    }
}
