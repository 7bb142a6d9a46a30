//! What the machine itself adds: how late a sleep ends, and how long a request is under way that no model delays.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::device::Device;
use crate::sys;
use crate::timed::Waiting;

fn quantile(sorted: &[u64], share: usize) -> u64 {
    sorted[(sorted.len() - 1) * share / 100]
}

/// Sleeps of 200 µs: how much longer they take.
pub(crate) fn waiting() -> io::Result<Waiting> {
    const ASKED: u64 = 200_000;
    let wake = sys::event()?;
    let mut late = Vec::with_capacity(100);
    for _ in 0..100 {
        let start = Instant::now();
        sys::wait([wake.as_fd()], Some(ASKED))?;
        late.push(nanoseconds(start.elapsed()).saturating_sub(ASKED));
    }
    late.sort_unstable();
    Ok(Waiting { overshoot: quantile(&late, 50), spin: quantile(&late, 90).min(100_000) })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads of 4 KiB that no model delays, through `path`: the median of their times, nanoseconds.
pub(crate) fn round_trip(device: &Device, path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    device.bypass.store(true, Ordering::Release);
    let mut times = Vec::with_capacity(300);
    for _ in 0..300 {
        let start = Instant::now();
        if let Err(error) = sys::read_page(file.as_fd(), 0) {
            device.bypass.store(false, Ordering::Release);
            return Err(error);
        }
        times.push(nanoseconds(start.elapsed()));
    }
    device.bypass.store(false, Ordering::Release);
    times.sort_unstable();
    Ok((quantile(&times, 50), quantile(&times, 99)))
}

/// Whether a disk whose quickest request takes `fastest` can be served, and what was measured.
pub(crate) fn verdict(waiting: Waiting, trip: (u64, u64), fastest: Option<u64>, path: &Path) -> Value {
    let verdict = match fastest {
        None => "unmodelled",
        Some(fastest) if fastest < trip.0 => "too-fast",
        Some(_) => "ok",
    };
    json!({
        "verdict": verdict,
        "fastest_request_ns": fastest,
        "round_trip_ns": {"p50": trip.0, "p99": trip.1},
        "wake_overshoot_ns": {"p50": waiting.overshoot, "p90": waiting.spin},
        "measured_through": path,
    })
}
