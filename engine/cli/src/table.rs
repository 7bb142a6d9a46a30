//! Formatting of the result as aligned text.
//!
//! `comfy-table` and `tabled` are not used: their borders and wrapped cells are not needed here, and the rest are the
//! twenty lines of [`align`].

use std::fmt::Write;

use fslab_engine::document::{Document, Operation};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

use crate::units::{count, nanoseconds};

const HEADINGS: [&str; 11] =
    ["operation", "count", "seconds", "sync", "per second", "MiB/s", "p50", "p99", "p99.9", "max", "cpu"];

/// Format the table of operations, the answer if there is one, and the warnings.
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
    if let Some(Value::Object(answer)) = &document.answer {
        let _ = write!(text, "\n\n{}", render_answer(answer).trim_end());
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

/// Format the answer: plain values first, one per line, then each list of objects as a table under its key.
fn render_answer(answer: &Map<String, Value>) -> String {
    let (tables, plain): (Vec<_>, Vec<_>) = answer.iter().partition(|(_, value)| is_table(value));
    let lines: Vec<[String; 2]> = plain.into_iter().map(|(key, value)| [key.clone(), cell(value)]).collect();
    let mut text = align(&lines);
    for (key, value) in tables {
        let rows = rows_of(value);
        if !rows.is_empty() {
            let _ = write!(text, "\n{key}\n{}", align(&rows));
        }
    }
    text
}

fn is_table(value: &Value) -> bool {
    value.as_array().is_some_and(|rows| rows.iter().all(Value::is_object))
}

/// Return the heading and the rows of a list of objects, with the columns of `NAMING` first. An empty list has no
/// heading.
fn rows_of(value: &Value) -> Vec<Vec<String>> {
    let rows: Vec<&Map<String, Value>> =
        value.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
    let Some(first) = rows.first() else { return Vec::new() };
    let mut keys: Vec<&String> = first.keys().collect();
    keys.sort_by_key(|key| !NAMING.contains(&key.as_str()));
    let heading = keys.iter().map(|key| (*key).clone()).collect();
    let value = |row: &Map<String, Value>, key: &str| match row.get(key) {
        None => String::new(),
        Some(Value::Number(number)) if NAMING.contains(&key) => number.to_string(), // not a quantity
        Some(value) => cell(value),
    };
    let cells = rows.iter().map(|row| keys.iter().map(|key| value(row, key)).collect());
    std::iter::once(heading).chain(cells).collect()
}

/// Keys whose values identify a row.
const NAMING: [&str; 7] = ["path", "paths", "extension", "uid", "younger_than_days", "text", "name"];

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.escape_debug().to_string(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), count),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join("  "),
        Value::Object(object) => {
            let parts: Vec<_> = object.iter().map(|(key, value)| format!("{key} {}", cell(value))).collect();
            parts.join(", ")
        }
        Value::Bool(yes) => yes.to_string(),
    }
}

/// Align the columns: the first one to the left, the others to the right.
fn align<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.as_ref().get(column)).map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.width());
            let _ = match column {
                0 => write!(text, "{cell}{padding}"),
                _ => write!(text, "  {padding}{cell}"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_no_quantities() {
        let rows = rows_of(&serde_json::json!([{"bytes": 123_456, "uid": 65534}]));
        assert_eq!(rows, [["uid", "bytes"], ["65534", "123,456"]]);
    }

    #[test]
    fn columns_stand_below_each_other_whatever_the_names_are_written_in() {
        let rows =
            [["写真", "1"], ["e\u{301}t\u{e9}", "22"], ["abcde", "3"]].map(|row| row.map(String::from));
        assert_eq!(align(&rows), "写真    1\ne\u{301}té    22\nabcde   3\n");
    }
}
