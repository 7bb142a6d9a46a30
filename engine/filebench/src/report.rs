//! Results of a workload and their JSON form in the protocol.

use serde_json::{Map, Value, json};

use super::fileset::Created;
use super::program::{Class, FlowopInfo, Kind, Moves};
use super::runtime::{POWERS, Shared, Total};
use fslab_engine::document::{Operation, Warning};
use fslab_engine::measure::cpu::CpuTime;
use fslab_engine::measure::histogram::{Latencies, Summary};

/// The results of a workload.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) created: Vec<Created>,
    pub(crate) threads: usize,
    pub(crate) messages: Vec<String>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) periods: Vec<(Option<String>, Measured)>,
    pub(crate) results: Vec<Result>,
}

/// The statistics of an interval.
#[derive(Debug)]
pub(crate) struct Measured {
    seconds: f64,
    flowops: Vec<(FlowopInfo, Total)>,
}

/// The result of a finished run.
#[derive(Debug)]
pub(crate) struct Result {
    pub(crate) measured: Measured,
    /// When the measurement began, in seconds of `CLOCK_MONOTONIC`.
    pub(crate) began_seconds: f64,
    /// Reason of the end: `time`, `done` (the threads ended) or `out_of_files`.
    pub(crate) ended: &'static str,
    pub(crate) first_seconds: f64,
    pub(crate) sync_seconds: Option<f64>,
    pub(crate) cpu: CpuTime,
}

/// Totals of all flowops of the class `Io`.
struct Sum {
    operations: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
    latency: Option<Summary>,
    scheduled: Option<Summary>,
}

impl Measured {
    pub(crate) fn new(shared: &Shared, seconds: f64) -> Self {
        let flowops = shared.model.flowops.iter().cloned().zip(shared.statistics.read()).collect();
        Self { seconds, flowops }
    }

    fn sum(&self) -> Sum {
        let io = || self.flowops.iter().filter(|(info, _)| info.kind.class() == Class::Io);
        let of = |moves: Moves| io().filter(move |(info, _)| info.kind.moves() == moves);
        let mut all = Latencies::default();
        let mut scheduled = Latencies::default();
        for (_, total) in io() {
            all.merge(total.latencies.clone());
            scheduled.merge(total.scheduled.clone());
        }
        Sum {
            operations: io().map(|(_, total)| total.count).sum(),
            reads: of(Moves::Reads).map(|(_, total)| total.count).sum(),
            writes: of(Moves::Writes).map(|(_, total)| total.count).sum(),
            bytes: io().map(|(_, total)| total.bytes).sum(),
            bytes_read: of(Moves::Reads).map(|(_, total)| total.bytes).sum(),
            bytes_written: of(Moves::Writes).map(|(_, total)| total.bytes).sum(),
            latency: all.summary(),
            scheduled: scheduled.summary(),
        }
    }

    fn rate(&self, amount: u64) -> Option<f64> {
        (self.seconds > 0.0).then(|| amount as f64 / self.seconds)
    }

    fn to_json(&self) -> Value {
        let sum = self.sum();
        json!({
            "seconds": self.seconds,
            "summary": {
                "count": sum.operations,
                "rate_per_second": self.rate(sum.operations),
                "reads_per_second": self.rate(sum.reads),
                "writes_per_second": self.rate(sum.writes),
                "bytes_read": sum.bytes_read,
                "bytes_written": sum.bytes_written,
                "bandwidth_bytes_per_second": self.rate(sum.bytes),
                "latency_ns": sum.latency,
                "scheduled_latency_ns": sum.scheduled,
            },
            "flowops": self.flowops.iter().map(|one| self.flowop(one)).collect::<Vec<_>>(),
        })
    }

    fn flowop(&self, (info, total): &(FlowopInfo, Total)) -> Value {
        let mut total = total.clone();
        let counted = info.kind.moves() != Moves::Nothing || info.kind == Kind::ListDirectory;
        let bytes = counted.then_some(total.bytes);
        let mut entry = json!({
            "name": info.name,
            "kind": info.kind.name(),
            "count": total.count,
            "bytes": bytes,
            "synced": total.synced,
            "rate_per_second": self.rate(total.count),
            "bandwidth_bytes_per_second": bytes.and_then(|bytes| self.rate(bytes)),
            "latency_ns": latency(&mut total),
            "scheduled_latency_ns": total.scheduled.summary(),
        });
        if let (Some(powers), Some(entry)) = (&total.powers, entry.as_object_mut()) {
            entry.insert("histogram".into(), histogram(powers));
        }
        if let (Kind::TestRandomVariable, Some(entry)) = (info.kind, entry.as_object_mut()) {
            entry.insert("values".into(), drawn(total.drawn));
        }
        entry
    }
}

/// Return the latency summary with the minimum, in nanoseconds; null if there is no latency.
fn latency(total: &mut Total) -> Value {
    let Some(summary) = total.summary() else { return Value::Null };
    let mut entry = Map::from_iter([("min".to_owned(), json!(total.min_ns))]);
    if let Ok(Value::Object(rest)) = serde_json::to_value(&summary) {
        entry.extend(rest);
    }
    // Exact mean, calculated from the sum of all latencies.
    entry.insert("mean".into(), json!(total.sum_ns as f64 / total.count.max(1) as f64));
    Value::Object(entry)
}

/// Return the latency histogram by powers of two: each entry counts the latencies from half of `below_ns` up to, but
/// not including, `below_ns`. The last bucket also contains all longer latencies. Empty buckets are left out.
fn histogram(powers: &[u64; POWERS]) -> Value {
    let entry = |(power, count): (usize, &u64)| json!({"below_ns": 1_u64 << power, "count": count});
    powers.iter().enumerate().filter(|(_, count)| **count > 0).map(entry).collect()
}

fn drawn((count, sum, squares): (u64, f64, f64)) -> Value {
    if count == 0 {
        return Value::Null;
    }
    let mean = sum / count as f64;
    let deviation = (squares / count as f64 - mean * mean).max(0.0).sqrt();
    json!({"count": count, "mean": mean, "deviation": deviation})
}

impl Result {
    fn to_json(&self) -> Value {
        let mut entry = self.measured.to_json();
        entry["ended"] = json!(self.ended);
        entry
    }

    fn operation(&self) -> Operation {
        let (sum, measured) = (self.measured.sum(), &self.measured);
        let seconds = measured.seconds + self.sync_seconds.unwrap_or(0.0);
        let rate = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
        Operation {
            name: "workload",
            count: sum.operations,
            bytes: Some(sum.bytes),
            errors: 0,
            began_seconds: self.began_seconds,
            seconds,
            sync_seconds: self.sync_seconds,
            first_finished_seconds: self.first_seconds,
            last_finished_seconds: measured.seconds,
            rate_per_second: rate(sum.operations),
            bandwidth_bytes_per_second: rate(sum.bytes),
            cpu_user_seconds: self.cpu.user_ns as f64 / 1e9,
            cpu_system_seconds: self.cpu.system_ns as f64 / 1e9,
            latency_ns: sum.latency,
            syscalls: None,
            series: None,
        }
    }
}

impl Report {
    /// Return one operation for each run.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        self.results.iter().map(Result::operation).collect()
    }

    /// Return the answer of the output document: everything that is not in the operations.
    pub(crate) fn answer(&self, usage: &[String]) -> Value {
        let period = |(name, measured): &(Option<String>, Measured)| {
            let mut entry = measured.to_json();
            entry["name"] = json!(name);
            entry
        };
        json!({
            "threads": self.threads,
            "filesets": self.created.iter().map(created).collect::<Vec<_>>(),
            "runs": self.results.iter().map(Result::to_json).collect::<Vec<_>>(),
            "periods": self.periods.iter().map(period).collect::<Vec<_>>(),
            "messages": self.messages,
            "usage": usage,
        })
    }
}

fn created(one: &Created) -> Value {
    json!({
        "name": one.name,
        "entries": one.entries,
        "files": one.files,
        "reused": one.reused,
        "bytes": one.bytes,
        "directories": one.directories,
        "leaf_directories": one.leaf_directories,
        "seconds": one.seconds,
    })
}
