//! Formatting of a workload's results as in Filebench: one line for each flowop, then the summary.

use std::fmt::Write;

use fslab_engine::document::Outcome;
use serde_json::Value;

const MEBIBYTE: f64 = 1_048_576.0;

/// Format the filesets, the snapshots, the runs and the warnings.
pub(super) fn measured(outcome: &Outcome) -> String {
    let answer = outcome.answer.clone().unwrap_or_default();
    let mut text = String::new();
    for fileset in list(&answer["filesets"]) {
        let _ = writeln!(
            text,
            "{}: {} of {} files ({} reused), {} directories, {:.1} MiB, {:.2} s",
            word(&fileset["name"]),
            fileset["files"],
            fileset["entries"],
            fileset["reused"],
            fileset["directories"],
            number(&fileset["bytes"]) / MEBIBYTE,
            number(&fileset["seconds"]),
        );
    }
    let named = |one: &Value| one["name"].as_str().map_or_else(String::new, |name| format!(" {name}"));
    for period in list(&answer["periods"]) {
        let _ = write!(text, "\nSnapshot{} after {:.1} s\n", named(period), number(&period["seconds"]));
        breakdown(&mut text, period);
    }
    for run in list(&answer["runs"]) {
        let _ = write!(text, "\nRun of {:.3} s, {} threads\n", number(&run["seconds"]), answer["threads"]);
        breakdown(&mut text, run);
    }
    for warning in &outcome.warnings {
        let _ = write!(text, "\nwarning: {}", warning.message);
    }
    text.trim_end().to_owned()
}

fn breakdown(text: &mut String, measured: &Value) {
    let flowops: Vec<&Value> = list(&measured["flowops"]).collect();
    let width = flowops.iter().map(|one| word(&one["name"]).len()).max().unwrap_or(0).max(20);
    text.push_str("Per-Operation Breakdown\n");
    for one in flowops {
        let latency = &one["latency_ns"];
        let bandwidth = number(&one["bandwidth_bytes_per_second"]) / MEBIBYTE;
        let _ = write!(
            text,
            "{:width$} {:>9}ops {:>8.0}ops/s {:>7.1}MiB/s {:>8.3}ms/op",
            word(&one["name"]),
            one["count"].to_string(),
            number(&one["rate_per_second"]),
            bandwidth,
            milliseconds(&latency["mean"]),
        );
        if !latency.is_null() {
            let _ = write!(
                text,
                " [{:.3}ms - {:.3}ms]",
                milliseconds(&latency["min"]),
                milliseconds(&latency["max"])
            );
            for percentile in ["p50", "p90", "p99", "p99.9"] {
                let _ = write!(text, " {percentile} {:.3}ms", milliseconds(&latency[percentile]));
            }
        }
        text.push('\n');
        for bucket in list(&one["histogram"]) {
            let _ = writeln!(text, "{:width$} below {} ns: {}", "", bucket["below_ns"], bucket["count"]);
        }
        if let Some(values) = one["values"].as_object() {
            let _ = writeln!(
                text,
                "{:width$} {} values, mean {:.2}, deviation {:.2}",
                "",
                values["count"],
                number(&values["mean"]),
                number(&values["deviation"])
            );
        }
    }
    summary(text, &measured["summary"]);
}

fn summary(text: &mut String, summary: &Value) {
    let _ = writeln!(
        text,
        "IO Summary: {:>5.0} ops {:>5.3} ops/s {:.0}/{:.0} rd/wr {:>5.1}MiB/s {:>5.3}ms/op",
        number(&summary["count"]),
        number(&summary["rate_per_second"]),
        number(&summary["reads_per_second"]),
        number(&summary["writes_per_second"]),
        number(&summary["bandwidth_bytes_per_second"]) / MEBIBYTE,
        milliseconds(&summary["latency_ns"]["mean"]),
    );
}

/// Format the answer of `--check`: what the workload would do.
pub(super) fn checked(outcome: &Outcome) -> String {
    let answer = outcome.answer.clone().unwrap_or_default();
    let mut text = format!(
        "no errors: {} files, {:.1} MiB in total, in {} filesets, {} threads, {} s\n",
        answer["files"],
        number(&answer["bytes"]) / MEBIBYTE,
        list(&answer["filesets"]).count(),
        answer["threads"],
        number(&answer["seconds"]),
    );
    variables(&mut text, &answer["variables"]);
    for line in list(&answer["usage"]) {
        let _ = writeln!(text, "{}", word(line));
    }
    for warning in &outcome.warnings {
        let _ = writeln!(text, "warning: {}", warning.message);
    }
    text.trim_end().to_owned()
}

/// Format the answer of `--list`: the built-in workloads with their variables.
pub(super) fn listed(outcome: &Outcome) -> String {
    let answer = outcome.answer.clone().unwrap_or_default();
    let mut text = String::new();
    for one in list(&answer["workloads"]) {
        let _ = writeln!(text, "{:18} {}", word(&one["name"]), word(&one["summary"]));
        let settings = one["variables"].as_object().into_iter().flatten();
        let settings: Vec<String> = settings
            .filter(|(name, _)| name.as_str() != "dir")
            .map(|(name, value)| format!("{name}={}", word(value)))
            .filter(|setting| !setting.contains(' '))
            .collect();
        let _ = writeln!(text, "{:18} {}", "", settings.join(" "));
    }
    text.trim_end().to_owned()
}

fn variables(text: &mut String, variables: &Value) {
    for (name, value) in variables.as_object().into_iter().flatten() {
        let _ = writeln!(text, "  ${name}={}", word(value));
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn milliseconds(value: &Value) -> f64 {
    number(value) / 1e6
}
