//! The monotonic clock in nanoseconds, and what one reading of it costs.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock, read without a system call where the vDSO allows.
#[inline]
pub fn now_ns() -> u64 {
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
