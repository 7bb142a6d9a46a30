//! Conversion of the log to the formats of other tools.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use fslab_disk_model::drive::Op;
use fslab_disk_model::log::{self, NO_DATA, Record};
use fslab_engine::input;

use crate::recorder::Suffix;
use crate::states;

/// Formats of other tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// Log of the kernel's dm-log-writes, for replay-log; the log needs --log-data
    LogWrites,
    /// Text in the format of blkparse
    Blkparse,
}

fn phases(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path.with_suffix("json")).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    serde_json::from_value(value["phases"].clone()).unwrap_or_default()
}

/// Write the log at `path` to `output` in another format.
pub(crate) fn export(path: &Path, format: Format, output: &Path) -> anyhow::Result<()> {
    let data =
        match format {
            Format::Blkparse => None,
            Format::LogWrites => Some(input::open(&path.with_suffix("data")).with_context(|| {
                format!("{} has no data: start the server with --log-data", path.display())
            })?),
        };
    let data_bytes = data.as_ref().map_or(Ok(u64::MAX), |file| file.metadata().map(|about| about.len()))?;
    let records: Vec<Record> = states::open(path, data_bytes)?.rows.into_iter().flatten().collect();
    let file = File::create_new(output).with_context(|| format!("cannot create {}", output.display()))?;
    let mut out = BufWriter::new(file);
    let written = match data {
        None => blkparse(&records, &mut out),
        Some(data) => log_writes(&phases(path), records, data, &mut out),
    };
    if let Err(error) = written.and_then(|()| Ok(out.flush()?)) {
        let _ = fs::remove_file(output);
        return Err(error).with_context(|| format!("cannot write {}", output.display()));
    }
    Ok(())
}

fn blkparse(records: &[Record], out: &mut impl Write) -> anyhow::Result<()> {
    let mut lines: Vec<_> = records.iter().flat_map(log::blkparse).collect();
    lines.sort_by_key(|(at, _)| *at);
    for (_, line) in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Write the changes and flushes in the order of their earliest durability, with a mark at the start of each phase.
fn log_writes(
    names: &[String],
    mut records: Vec<Record>,
    mut data: File,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    records.retain(|record| record.op != Op::Read && record.flags & log::FAILED == 0);
    log::by_durability(&mut records);
    let mut marked = 0;
    let mut body = Vec::new();
    let mut entries: u64 = 0;
    for record in &records {
        while marked < record.phase {
            marked += 1;
            body.extend(log::log_writes_mark(names.get(usize::from(marked)).map_or("", String::as_str)));
            entries += 1;
        }
        body.extend(log::log_writes_entry(record));
        entries += 1;
        if record.op == Op::Write && record.data != NO_DATA {
            let start = body.len();
            body.resize(start + record.length as usize, 0);
            data.seek(SeekFrom::Start(record.data))?;
            data.read_exact(&mut body[start..])?;
        }
    }
    out.write_all(&log::log_writes_super(entries))?;
    out.write_all(&body)?;
    Ok(())
}
