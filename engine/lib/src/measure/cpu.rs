//! CPU time of the calling thread.

use std::ops::{Add, AddAssign, Sub};

/// CPU time in nanoseconds, from getrusage(2) with a resolution of 1 µs. The split depends on the kernel's accounting:
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
        Self::of(libc::RUSAGE_THREAD)
    }

    /// Return the CPU time that all threads of this process have used so far, including those that have ended.
    pub fn of_this_process() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    fn of(who: libc::c_int) -> Self {
        // Without this call, the time since the last timer tick is missing: getrusage(2) does not update the sum of a
        // running thread (kernel: kernel/sched/cputime.c, task_sched_runtime).
        let _ = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer refers to a complete `rusage`. All-zero bytes are a valid `rusage`, so the value is
        // initialized even if the call fails.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::clock::now_ns;

    /// Less than a timer tick is seen too.
    #[test]
    fn short_work_is_counted() {
        for _ in 0..20 {
            let (thread, process) = (CpuTime::of_this_thread(), CpuTime::of_this_process());
            let start = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            let spent = || {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
                (now.tv_sec - start.tv_sec) * 1_000_000_000 + now.tv_nsec - start.tv_nsec
            };
            while spent() < 500_000 {
                std::hint::black_box(now_ns());
            }
            for used in [CpuTime::of_this_thread() - thread, CpuTime::of_this_process() - process] {
                assert!(used.user_ns + used.system_ns >= 490_000, "{used:?}");
            }
        }
    }
}
