//! Measurement of the machine's own delays: how late a sleep ends, and the round trip of a request that no model
//! delays.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::bail;
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

/// Measure reads of 4 KiB through `path` so many times, and return the fastest measurement: where the scheduler puts the
/// processes doubles the round trip of all reads of one.
pub(crate) fn round_trip(device: &Device, path: &Path, times: u32) -> anyhow::Result<RoundTrip> {
    let mut best = once(device, path)?;
    for _ in 1..times {
        let trip = once(device, path)?;
        if trip.low < best.low {
            best = trip;
        }
    }
    Ok(best)
}

/// Measure in a process of its own. A server that waits for an answer of its own cannot be killed: the kernel lets it
/// wait until the connection ends, and the connection ends with the server.
fn once(device: &Device, path: &Path) -> anyhow::Result<RoundTrip> {
    device.bypass.store(true, Ordering::Release);
    let measured = Command::new("/proc/self/exe")
        .arg("round-trip")
        .arg(path)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    device.bypass.store(false, Ordering::Release);
    let measured = measured?;
    if !measured.status.success() {
        bail!("{}", String::from_utf8_lossy(&measured.stderr).trim());
    }
    let [low, median, high] = serde_json::from_slice(&measured.stdout)?;
    Ok(RoundTrip { low, median, high })
}

/// Print the round trip of reads through `path` as JSON: its percentiles 10, 50 and 99. The first 500 reads are
/// discarded: they take twice as long on an idle processor.
pub(crate) fn measure(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    const READS: usize = 1000;
    const WARM_UP: usize = 500;
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL.unsigned_abs().into())?;
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let start = Instant::now();
        sys::read_page(file.as_fd(), 0)?;
        times.push(nanoseconds(start.elapsed()));
    }
    let warm = &mut times[WARM_UP..];
    warm.sort_unstable();
    let found = json!([quantile(warm, 10), quantile(warm, 50), quantile(warm, 99)]);
    Ok(writeln!(io::stdout(), "{found}")?)
}

/// Return whether a disk with the shortest request time `fastest` can be served, and what was measured, if anything.
/// `ahead`: how much earlier answers are sent.
pub(crate) fn verdict(
    waiting: Waiting,
    trip: Option<RoundTrip>,
    ahead: u64,
    fastest: Option<u64>,
    path: &Path,
) -> Value {
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
        "ahead_ns": ahead,
        "wake_overshoot_ns": {"p50": waiting.overshoot, "p90": waiting.spin},
        "measured_through": trip.map(|_| path),
    })
}
