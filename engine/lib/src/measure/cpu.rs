//! CPU time of the calling thread.

use std::ops::{Add, AddAssign, Sub};

/// CPU time in nanoseconds, from getrusage(2) with a resolution of 1 µs. The kernel updates the sum at timer ticks and
/// context switches, so it may be up to one tick (1 to 10 ms) too low. The split depends on the kernel's accounting:
/// measured with full dynticks (`nohz_full`), otherwise estimated from a sample at each timer tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in user space.
    pub user_ns: u64,
    /// Time in the kernel on behalf of the thread.
    pub system_ns: u64,
}

impl CpuTime {
    /// Return the CPU time that the calling thread has used so far.
    pub fn of_this_thread() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer refers to a complete `rusage`. All-zero bytes are a valid `rusage`, so the value is
        // initialized even if the call fails.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        Self { user_ns: nanoseconds(usage.ru_utime), system_ns: nanoseconds(usage.ru_stime) }
    }
}

#[expect(clippy::cast_sign_loss, reason = "a time spent is never negative")]
fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

impl Sub for CpuTime {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

impl Add for CpuTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { user_ns: self.user_ns + other.user_ns, system_ns: self.system_ns + other.system_ns }
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
