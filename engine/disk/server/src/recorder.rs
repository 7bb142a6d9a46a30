//! Writes the log: records to one file and, if requested, the data of writes to another.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use fslab_disk_model::Nanos;
use fslab_disk_model::log::{Mark, NO_DATA, RECORD, Record};
use serde_json::json;

use crate::sys;

/// The log leaves this many bytes of its file system free, or `RESERVE_SHARE` of a small one.
const RESERVE: u64 = 64 << 20;
const RESERVE_SHARE: u64 = 8;
/// The free space is looked at each time that the log has grown by this many bytes.
const LOOK_EVERY: u64 = 1 << 20;

/// An open log.
pub(crate) struct Recorder {
    path: PathBuf,
    records: BufWriter<File>,
    data: Option<(BufWriter<File>, u64)>,
    marks: Vec<String>,
    header: [u8; RECORD],
    size: u64,
    used: u64,
    limit: u64,
    /// Why a row or its data is missing. An evaluation of such a log would be wrong.
    lost: Option<io::Error>,
}

impl Recorder {
    /// Create `path` with this header (`log::header`), and `path.data` if the data of writes is logged. Both together
    /// have at most `limit` bytes. `size`: that of the disk.
    pub(crate) fn create(
        path: &Path,
        header: [u8; RECORD],
        with_data: bool,
        limit: u64,
        size: u64,
    ) -> io::Result<Self> {
        let mut records = BufWriter::with_capacity(1 << 18, File::create_new(path)?);
        records.write_all(&header)?;
        let data = if with_data {
            let file = File::create_new(path.with_suffix("data"))?;
            Some((BufWriter::with_capacity(1 << 20, file), 0))
        } else {
            None
        };
        let (path, marks) = (path.to_owned(), Vec::new());
        Ok(Self { path, records, data, marks, header, size, used: RECORD as u64, limit, lost: None })
    }

    /// Empty the log.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        self.marks.clear();
        self.lost = None;
        self.used = RECORD as u64;
        empty(&mut self.records)?;
        self.records.write_all(&self.header)?;
        let Some((file, end)) = &mut self.data else { return Ok(()) };
        *end = 0;
        empty(file)
    }

    /// Log nothing until the next `restart`.
    pub(crate) fn stop(&mut self) {
        self.lost = Some(io::Error::other("it is stopped until it is cleared"));
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

    /// Take these bytes for the next row or its data. Returns an error if there is no room for them.
    fn take(&mut self, bytes: usize) -> io::Result<()> {
        let used = self.used + bytes as u64;
        if used > self.limit {
            return Err(io::Error::other(format!("its limit of {} bytes is reached", self.limit)));
        }
        if used / LOOK_EVERY > self.used / LOOK_EVERY {
            let (free, size) = sys::free_bytes(self.records.get_ref())?;
            if free < RESERVE.min(size / RESERVE_SHARE) {
                return Err(io::Error::other(format!("only {free} bytes are free on its file system")));
            }
        }
        self.used = used;
        Ok(())
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
        if self.data.is_some() {
            self.take(data.len())?;
        }
        let Some((file, end)) = &mut self.data else { return Ok(NO_DATA) };
        file.write_all(data)?;
        *end += data.len() as u64;
        Ok(*end - data.len() as u64)
    }

    /// Append the record of a completed request.
    pub(crate) fn note(&mut self, record: &Record) {
        if self.is_whole() {
            self.lost = self.append(&record.to_bytes()).err();
        }
    }

    /// Append a mark after all completed requests. Returns its number.
    pub(crate) fn mark(&mut self, name: String, at: Nanos) -> io::Result<usize> {
        self.whole()?;
        let number = self.marks.len();
        self.marks.push(name);
        self.append(&Mark { number: number as u64, at }.to_bytes())?;
        Ok(number)
    }

    fn append(&mut self, row: &[u8; RECORD]) -> io::Result<()> {
        self.take(RECORD)?;
        self.records.write_all(row)
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
