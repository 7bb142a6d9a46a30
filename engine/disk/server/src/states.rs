//! `fslab-disk states`: makes crash states of a log as image files, as it is asked on standard input.

use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fslab_disk_model::PAGE;
use fslab_disk_model::log::{RECORD, read_header};
use fslab_disk_model::states::{Crash, Fate, Pages};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::recorder::Suffix;

/// Which state is wanted, and where.
#[derive(Debug, Deserialize)]
struct Wanted {
    cut: usize,
    fate: Name,
    #[serde(default)]
    seed: u64,
    /// What the disk writes whole, in bytes.
    #[serde(default = "sector")]
    unit: u64,
    #[serde(default)]
    without: Vec<usize>,
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Kept,
    Lost,
    Random,
    Torn,
    Without,
}

fn sector() -> u64 {
    512
}

impl Wanted {
    fn fate(&self) -> Fate {
        match self.fate {
            Name::Kept => Fate::Kept,
            Name::Lost => Fate::Lost,
            Name::Random => Fate::Random(self.seed),
            Name::Torn => Fate::Torn(self.seed, self.unit),
            Name::Without => Fate::Without(self.without.clone()),
        }
    }
}

/// Answers one line for each on standard input, until its end.
pub(crate) fn states(log: &Path, base: &Path) -> anyhow::Result<()> {
    let bytes = read(log)?;
    let Some(size) = read_header(&bytes) else { bail!("{} is not a log of fslab-disk", log.display()) };
    let data = read(&log.with_suffix("data"))?;
    let mut crash = Crash::new(pages(base)?, &bytes[RECORD..], data);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json!({"ok": true, "rows": crash.rows(), "size_bytes": size}))?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&mut crash, size, &line?)
            .unwrap_or_else(|error| json!({"ok": false, "error": format!("{error:#}")}));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(crash: &mut Crash, size: u64, line: &str) -> anyhow::Result<Value> {
    let wanted: Wanted = serde_json::from_str(line).context("not a request")?;
    if wanted.cut > crash.rows() {
        bail!("cut {} is behind the log's {} rows", wanted.cut, crash.rows());
    }
    if wanted.unit == 0 || wanted.unit % 512 != 0 {
        bail!("unit {} must be a multiple of 512", wanted.unit);
    }
    let state = crash.state(wanted.cut, &wanted.fate());
    let file = File::create_new(&wanted.output)
        .with_context(|| format!("cannot create {}", wanted.output.display()))?;
    file.set_len(size)?;
    let durable = crash.pages().iter().filter(|(page, _)| !state.changed.contains_key(page));
    for (page, bytes) in durable.chain(&state.changed) {
        if bytes.iter().any(|byte| *byte != 0) {
            file.write_all_at(bytes, page * PAGE as u64)?;
        }
    }
    Ok(json!({"ok": true, "at_risk": state.at_risk, "lost": state.lost}))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The pages of an image that are not zero.
fn pages(image: &Path) -> anyhow::Result<Pages> {
    let mut file = File::open(image).with_context(|| format!("cannot read {}", image.display()))?;
    let (mut pages, mut chunk, mut number) = (Pages::new(), vec![0; 256 * PAGE], 0);
    loop {
        let mut filled = 0;
        while filled < chunk.len() {
            match file.read(&mut chunk[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        for page in chunk[..filled].chunks(PAGE) {
            if page.iter().any(|byte| *byte != 0) {
                pages.insert(number, page.into());
            }
            number += 1;
        }
        if filled < chunk.len() {
            return Ok(pages);
        }
    }
}
