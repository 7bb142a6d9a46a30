//! Measurement of the machine's own delays: how late a sleep ends, and the round trip of a request that no model
//! delays.

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

/// Measure how much longer than requested sleeps of 200 µs last.
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

/// The round-trip time of a request that no model delays, in ns. Replies are sent earlier by `low` (10th percentile).
/// With the median, half of them would arrive before the model's time if the round trip is a large part of it.
#[derive(Clone, Copy)]
pub(crate) struct RoundTrip {
    pub(crate) low: u64,
    median: u64,
    high: u64,
}

/// Measure reads of 4 KiB through `path`. The first 500 are discarded: they take twice as long on an idle processor.
pub(crate) fn round_trip(device: &Device, path: &Path) -> io::Result<RoundTrip> {
    use std::os::unix::fs::OpenOptionsExt;
    const READS: usize = 1000;
    const WARM_UP: usize = 500;
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    device.bypass.store(true, Ordering::Release);
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let start = Instant::now();
        if let Err(error) = sys::read_page(file.as_fd(), 0) {
            device.bypass.store(false, Ordering::Release);
            return Err(error);
        }
        times.push(nanoseconds(start.elapsed()));
    }
    device.bypass.store(false, Ordering::Release);
    let warm = &mut times[WARM_UP..];
    warm.sort_unstable();
    Ok(RoundTrip { low: quantile(warm, 10), median: quantile(warm, 50), high: quantile(warm, 99) })
}

/// Return whether a disk with the shortest request time `fastest` can be served, and what was measured, if anything.
pub(crate) fn verdict(waiting: Waiting, trip: Option<RoundTrip>, fastest: Option<u64>, path: &Path) -> Value {
    let verdict = match (fastest, trip) {
        (None, _) => "unmodelled",
        (Some(_), None) => "unmeasured",
        (Some(fastest), Some(trip)) if fastest < trip.median => "too-fast",
        (Some(_), Some(_)) => "ok",
    };
    json!({
        "verdict": verdict,
        "fastest_request_ns": fastest,
        "round_trip_ns": trip.map(|trip| json!({"p10": trip.low, "p50": trip.median, "p99": trip.high})),
        "wake_overshoot_ns": {"p50": waiting.overshoot, "p90": waiting.spin},
        "measured_through": trip.map(|_| path),
    })
}
