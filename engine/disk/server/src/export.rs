//! The log in other tools' formats.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueEnum;
use fslab_disk_model::drive::Op;
use fslab_disk_model::log::{self, NO_DATA, RECORD, Record};

use crate::recorder::Suffix;

/// Formats of other tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// A log of the kernel's dm-log-writes, for replay-log; needs --log-data
    LogWrites,
    /// Text as blkparse prints it
    Blkparse,
}

fn records(path: &Path) -> anyhow::Result<Vec<Record>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if log::read_header(&bytes).is_none() {
        bail!("{} is not a log of fslab-disk", path.display());
    }
    Ok(bytes[RECORD..].chunks_exact(RECORD).filter_map(Record::from_bytes).collect())
}

fn phases(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path.with_suffix("json")).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    serde_json::from_value(value["phases"].clone()).unwrap_or_default()
}

/// Writes the log at `path` to `output` in another format.
pub(crate) fn export(path: &Path, format: Format, output: &Path) -> anyhow::Result<()> {
    let records = records(path)?;
    let file = File::create_new(output).with_context(|| format!("cannot create {}", output.display()))?;
    let mut out = BufWriter::new(file);
    match format {
        Format::Blkparse => blkparse(&records, &mut out)?,
        Format::LogWrites => log_writes(path, records, &mut out)?,
    }
    out.flush()?;
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

/// What was written, in the order in which it became durable at the earliest; marks where phases begin.
fn log_writes(path: &Path, mut records: Vec<Record>, out: &mut impl Write) -> anyhow::Result<()> {
    records.retain(|record| record.op != Op::Read && record.flags & log::FAILED == 0);
    log::by_durability(&mut records);
    let mut data = File::open(path.with_suffix("data"))
        .with_context(|| format!("{} has no data: start the server with --log-data", path.display()))?;
    let names = phases(path);
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
