//! Counters and latencies. The counters are atomic, because some threads serve requests without the core's lock.

use std::sync::atomic::{AtomicU64, Ordering};

use fslab_disk_model::drive::Op;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Requests, bytes and errors of one operation.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    operations: [Counter; 4],
    /// Writes that failed because of the memory limit.
    pub(crate) no_space: AtomicU64,
}

pub(crate) const NAMES: [&str; 4] = ["read", "write", "flush", "discard"];

impl Counters {
    /// Count an answered request.
    pub(crate) fn count(&self, op: Op, bytes: u64, failed: bool) {
        let counter = &self.operations[op as usize];
        counter.requests.fetch_add(1, Ordering::Relaxed);
        if failed {
            counter.errors.fetch_add(1, Ordering::Relaxed);
        } else {
            counter.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Set all counters to 0.
    pub(crate) fn reset(&self) {
        self.no_space.store(0, Ordering::Relaxed);
        for counter in &self.operations {
            for number in [&counter.requests, &counter.bytes, &counter.errors] {
                number.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Return the counters as JSON, with latencies if they are measured.
    pub(crate) fn report(&self, latency: Option<&[Histogram<u64>; 4]>) -> Value {
        let one = |(index, name): (usize, &&str)| {
            let counter = &self.operations[index];
            let value = json!({
                "requests": counter.requests.load(Ordering::Relaxed),
                "bytes": counter.bytes.load(Ordering::Relaxed),
                "errors": counter.errors.load(Ordering::Relaxed),
                "service_ns": latency.map(|all| summary(&all[index])),
            });
            ((*name).to_owned(), value)
        };
        Value::Object(NAMES.iter().enumerate().map(one).collect())
    }
}

/// Return a histogram of nanoseconds up to an hour, with a resolution of 0.1 %.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(3_600_000_000_000, 3).expect("bug: these bounds are valid")
}

/// Return the mean, percentiles and maximum; null if nothing was counted.
pub(crate) fn summary(histogram: &Histogram<u64>) -> Value {
    if histogram.is_empty() {
        return Value::Null;
    }
    json!({
        "count": histogram.len(),
        "mean": histogram.mean(),
        "p50": histogram.value_at_quantile(0.5),
        "p90": histogram.value_at_quantile(0.9),
        "p99": histogram.value_at_quantile(0.99),
        "p99.9": histogram.value_at_quantile(0.999),
        "max": histogram.max(),
    })
}
