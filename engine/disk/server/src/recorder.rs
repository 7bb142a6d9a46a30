//! Writes the log: records to one file and, if requested, the data of writes to another.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use fslab_disk_model::Nanos;
use fslab_disk_model::log::{Mark, NO_DATA, Record, header};
use serde_json::json;

/// An open log.
pub(crate) struct Recorder {
    path: PathBuf,
    records: BufWriter<File>,
    data: Option<(BufWriter<File>, u64)>,
    marks: Vec<String>,
    size: u64,
    seed: u64,
    /// Why a row or its data is missing. An evaluation of such a log would be wrong.
    lost: Option<io::Error>,
}

impl Recorder {
    /// Create `path`, and `path.data` if the data of writes is logged.
    pub(crate) fn create(path: &Path, with_data: bool, size: u64, seed: u64) -> io::Result<Self> {
        let mut records = BufWriter::with_capacity(1 << 18, File::create_new(path)?);
        records.write_all(&header(size, seed))?;
        let data = if with_data {
            let file = File::create_new(path.with_suffix("data"))?;
            Some((BufWriter::with_capacity(1 << 20, file), 0))
        } else {
            None
        };
        Ok(Self { path: path.to_owned(), records, data, marks: Vec::new(), size, seed, lost: None })
    }

    /// Empty the log.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        self.marks.clear();
        self.lost = None;
        empty(&mut self.records)?;
        self.records.write_all(&header(self.size, self.seed))?;
        let Some((file, end)) = &mut self.data else { return Ok(()) };
        *end = 0;
        empty(file)
    }

    /// Return whether the log is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.lost.is_none()
    }

    fn whole(&self) -> io::Result<()> {
        self.lost.as_ref().map_or(Ok(()), |lost| {
            Err(io::Error::other(format!("the log {} is incomplete: {lost}", self.path.display())))
        })
    }

    /// Append the data of a write. Returns its position in the data file, or `NO_DATA`.
    pub(crate) fn keep(&mut self, data: &[u8]) -> u64 {
        if !self.is_whole() {
            return NO_DATA;
        }
        self.try_keep(data).unwrap_or_else(|error| {
            self.lost = Some(error);
            NO_DATA
        })
    }

    fn try_keep(&mut self, data: &[u8]) -> io::Result<u64> {
        let Some((file, end)) = &mut self.data else { return Ok(NO_DATA) };
        file.write_all(data)?;
        *end += data.len() as u64;
        Ok(*end - data.len() as u64)
    }

    /// Append the record of a completed request.
    pub(crate) fn note(&mut self, record: &Record) {
        if self.is_whole() {
            self.lost = self.records.write_all(&record.to_bytes()).err();
        }
    }

    /// Append a mark after all completed requests. Returns its number.
    pub(crate) fn mark(&mut self, name: String, at: Nanos) -> io::Result<usize> {
        self.whole()?;
        let number = self.marks.len();
        self.marks.push(name);
        self.records.write_all(&Mark { number: number as u64, at }.to_bytes())?;
        Ok(number)
    }

    /// Write the log so far to its files, and the names of phases and marks to `path.json`.
    pub(crate) fn sync(&mut self, phases: &[String]) -> io::Result<()> {
        self.whole()?;
        self.records.flush()?;
        if let Some((file, _)) = &mut self.data {
            file.flush()?;
        }
        let about = json!({"version": 1, "size_bytes": self.size, "phases": phases, "marks": self.marks});
        std::fs::write(self.path.with_suffix("json"), format!("{about}\n"))
    }
}

fn empty(writer: &mut BufWriter<File>) -> io::Result<()> {
    writer.flush()?;
    let file = writer.get_mut();
    file.set_len(0)?;
    file.rewind()
}

/// Appends a suffix: `log` and `data` give `log.data`.
pub(crate) trait Suffix {
    /// Return the path with `.extension` appended.
    fn with_suffix(&self, extension: &str) -> PathBuf;
}

impl Suffix for Path {
    fn with_suffix(&self, extension: &str) -> PathBuf {
        let mut name = self.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        name.into()
    }
}
