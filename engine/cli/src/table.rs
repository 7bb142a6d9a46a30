//! The result as aligned text, for people.

use std::fmt::Write;

use fslab_engine::document::{Document, Operation};
use serde_json::Value;

use crate::units::{count, nanoseconds};

const HEADINGS: [&str; 11] =
    ["operation", "count", "seconds", "sync", "per second", "MiB/s", "p50", "p99", "p99.9", "max", "cpu"];

/// The table, the answer if there is one, and the warnings.
pub(crate) fn render(document: &Document<Value>) -> String {
    let mut rows = vec![HEADINGS.map(String::from)];
    rows.extend(document.operations.iter().map(row));
    let mut text = align(&rows);
    let _ = write!(
        text,
        "\n{} thread{}, clock {:.0} ns per reading",
        document.threads,
        if document.threads == 1 { "" } else { "s" },
        document.clock_overhead_ns
    );
    if let Some(answer) = &document.answer {
        let _ = write!(text, "\n\n{}", serde_json::to_string_pretty(answer).unwrap_or_default());
    }
    for warning in &document.warnings {
        let _ = write!(text, "\nwarning: {}", warning.message);
    }
    text
}

fn row(operation: &Operation) -> [String; 11] {
    let unknown = || "–".to_owned();
    let latency = operation.latency_ns.as_ref();
    let percentile = |value: Option<u64>| value.map_or_else(unknown, |ns| nanoseconds(ns as f64));
    let mib = |bytes: f64| count(bytes / f64::from(1 << 20));
    [
        operation.name.to_owned(),
        count(operation.count as f64),
        format!("{:.4}", operation.seconds),
        operation.sync_seconds.map_or_else(unknown, |seconds| format!("{seconds:.4}")),
        operation.rate_per_second.map_or_else(unknown, count),
        operation.bandwidth_bytes_per_second.map_or_else(unknown, mib),
        percentile(latency.map(|l| l.p50)),
        percentile(latency.map(|l| l.p99)),
        percentile(latency.map(|l| l.p99_9)),
        percentile(latency.map(|l| l.max)),
        format!("{:.3} s", operation.cpu_user_seconds + operation.cpu_system_seconds),
    ]
}

fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            let _ = match column {
                0 => write!(text, "{cell}{padding}"),
                _ => write!(text, "  {padding}{cell}"),
            };
        }
        text.push('\n');
    }
    text
}
