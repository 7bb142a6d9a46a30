//! `fslab-disk states` creates crash states of a log as image files, on request from standard input.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use fslab_disk_model::PAGE;
use fslab_disk_model::log::Log;
use fslab_disk_model::states::{Crash, Fate, Pages, State};
use fslab_engine::input;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lines;
use crate::recorder::Suffix;

/// A request: the state to create, and where to write it.
#[derive(Debug, Deserialize)]
struct Wanted {
    cut: usize,
    fate: Name,
    #[serde(default)]
    seed: u64,
    /// Bytes that the disk writes atomically.
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

/// Answer each line of standard input with one line, until its end.
pub(crate) fn states(log: &Path, base: &Path) -> anyhow::Result<()> {
    let data = read(&log.with_suffix("data"))?;
    let log = open(log, data.len() as u64)?;
    let size = log.size;
    let mut crash = Crash::new(pages(base, size)?, log, data);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json!({"ok": true, "rows": crash.rows(), "size_bytes": size}))?;
    out.flush()?;
    for line in lines::bounded(std::io::stdin().lock()) {
        let answer = answer(&mut crash, size, &line?)
            .unwrap_or_else(|error| json!({"ok": false, "error": format!("{error:#}")}));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(crash: &mut Crash, size: u64, line: &[u8]) -> anyhow::Result<Value> {
    let wanted: Wanted = serde_json::from_slice(line).context("not a request")?;
    if wanted.cut > crash.rows() {
        bail!("cut {} is beyond the end of the log, which has {} rows", wanted.cut, crash.rows());
    }
    if wanted.unit == 0 || wanted.unit % 512 != 0 {
        bail!("unit {} must be a multiple of 512", wanted.unit);
    }
    let state = crash.state(wanted.cut, &wanted.fate());
    let file = File::create_new(&wanted.output)
        .with_context(|| format!("cannot create {}", wanted.output.display()))?;
    if let Err(error) = write(&file, size, crash, &state) {
        let _ = fs::remove_file(&wanted.output);
        return Err(error).with_context(|| format!("cannot write {}", wanted.output.display()));
    }
    Ok(json!({"ok": true, "at_risk": state.at_risk, "lost": state.lost}))
}

fn write(file: &File, size: u64, crash: &Crash, state: &State) -> io::Result<()> {
    file.set_len(size)?;
    let durable = crash.pages().iter().filter(|(page, _)| !state.changed.contains_key(page));
    for (page, bytes) in durable.chain(&state.changed) {
        if !is_zero(bytes) {
            file.write_all_at(bytes, page * PAGE as u64)?;
        }
    }
    Ok(())
}

/// Read the log at this path.
pub(crate) fn open(path: &Path, data_bytes: u64) -> anyhow::Result<Log> {
    Log::parse(&read(path)?, data_bytes)
        .map_err(|what| anyhow!("cannot use {} as a log of fslab-disk: {what}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input::open(path)?.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes)
}

/// Return the pages of an image that are not zero. Holes are not read: they are most of a large disk.
fn pages(image: &Path, size: u64) -> anyhow::Result<Pages> {
    let file = input::open(image)?;
    let end = file.metadata()?.len();
    if end != size {
        bail!("{} has {end} bytes, and the disk of the log {size}", image.display()); // what is missing is not zeros
    }
    let (mut pages, mut chunk, mut from) = (Pages::new(), vec![0; 256 * PAGE], 0);
    while let Some((start, stop)) = data_region(&file, from)? {
        let mut at = start - start % PAGE as u64; // the file's system may have smaller blocks
        while at < stop {
            let wanted = usize::try_from(stop.next_multiple_of(PAGE as u64).min(end) - at)?.min(chunk.len());
            file.read_exact_at(&mut chunk[..wanted], at)?;
            for (number, page) in (at / PAGE as u64..).zip(chunk[..wanted].chunks(PAGE)) {
                if !is_zero(page) {
                    pages.insert(number, page.into());
                }
            }
            at += wanted as u64;
        }
        from = stop;
    }
    Ok(pages)
}

/// Return where the next data of a file begins and ends, at this offset or behind it.
fn data_region(file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(start) => Ok(Some((start, rustix::fs::seek(file, SeekFrom::Hole(start))?))),
        Err(Errno::NXIO) => Ok(None), // only a hole is left, or nothing
        Err(error) => Err(error.into()),
    }
}

fn is_zero(page: &[u8]) -> bool {
    page == [0; PAGE]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_an_image_are_its_data_wherever_its_holes_are() {
        let path = std::env::temp_dir().join(format!("fslab-states-{}", std::process::id()));
        let file = File::create(&path).expect("a file");
        let size = 64 << 30; // a terabyte takes no longer
        file.set_len(size).expect("a size");
        for (page, byte) in [(0, 1), (300, 0), (301, 2), (size / PAGE as u64 - 1, 3)] {
            file.write_all_at(&[byte; PAGE], page * PAGE as u64).expect("a page");
        }
        let found = pages(&path, size);
        let others = [size - PAGE as u64, size + PAGE as u64].map(|other| pages(&path, other));
        fs::remove_file(&path).expect("the file");
        let mut bytes: Vec<_> =
            found.expect("pages").into_iter().map(|(page, data)| (page, data[0])).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, [(0, 1), (301, 2), (size / PAGE as u64 - 1, 3)]);
        assert!(others.iter().all(Result::is_err));
    }
}
