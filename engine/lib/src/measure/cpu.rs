//! CPU time of the calling thread.

use std::ops::{Add, AddAssign, Sub};

/// CPU time in nanoseconds. The sum is exact; the split is as fine as the kernel's accounting
/// (`CONFIG_VIRT_CPU_ACCOUNTING_GEN`, or else a sample at each timer tick).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user space.
    pub user_ns: u64,
    /// In the kernel, on behalf of the thread.
    pub system_ns: u64,
}

impl CpuTime {
    /// What the calling thread has used so far.
    pub fn of_this_thread() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a whole `rusage`, and all-zero bytes are a valid one, so that
        // the value is sound even if the call failed.
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
