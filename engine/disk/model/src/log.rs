//! The log of requests: fixed records of 64 bytes, little-endian, after a header of 64 bytes.
//! `engine/disk/PROTOCOL.md` has the layout as a table.

use crate::Nanos;
use crate::drive::Op;

/// Bytes of a record and of the header.
pub const RECORD: usize = 64;

/// The first eight bytes of a log.
pub const MAGIC: [u8; 8] = *b"FSLABDSK";

/// Version of the layout.
pub const VERSION: u32 = 1;

/// Value of `Record::data` if no data was recorded.
pub const NO_DATA: u64 = u64::MAX;

/// Flag: the request failed.
pub const FAILED: u8 = 1;
/// Flag: an injected fault affected the request.
pub const FAULT: u8 = 2;
/// Flag: a flush that reported success but made nothing durable.
pub const IGNORED: u8 = 4;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Number of the request, in the order of arrival.
    pub id: u64,
    /// Time of arrival, in drive time.
    pub submitted: Nanos,
    /// Time of completion, in drive time.
    pub completed: Nanos,
    /// First byte.
    pub offset: u64,
    /// Position of its data in the data file, or `NO_DATA`.
    pub data: u64,
    /// Length in bytes.
    pub length: u32,
    /// Number of flushes that arrived before it.
    pub epoch: u32,
    /// Number of its phase.
    pub phase: u16,
    /// Operation.
    pub op: Op,
    /// Bits `FAILED`, `FAULT`, `IGNORED`.
    pub flags: u8,
}

/// Flag of the header: the disk has no volatile cache, so what it has acknowledged is on the medium.
const DURABLE: u32 = 1;

/// Return the header of a log. `durable`: what the disk acknowledges is on the medium, without a flush.
pub fn header(disk_bytes: u64, seed: u64, durable: bool) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&64u32.to_le_bytes());
    bytes[16..24].copy_from_slice(&disk_bytes.to_le_bytes());
    bytes[24..32].copy_from_slice(&seed.to_le_bytes());
    bytes[32..36].copy_from_slice(&(u32::from(durable) * DURABLE).to_le_bytes());
    bytes
}

/// The largest size of a disk, in bytes.
pub const LARGEST_DISK: u64 = 1 << 50;

/// Return the size of the disk, or `None` if these bytes are not a log header of this version.
fn read_header(bytes: &[u8]) -> Option<u64> {
    let ours = bytes.len() >= RECORD && bytes[..8] == MAGIC && bytes[8..12] == VERSION.to_le_bytes();
    ours.then(|| u64_at(bytes, 16)).filter(|size| *size <= LARGEST_DISK && *size % crate::PAGE as u64 == 0)
}

/// A validated log: all changes are within the disk, and all data is within the data file, where no two rows share any:
/// so states take no more memory than a disk can have recorded.
#[derive(Debug)]
pub struct Log {
    /// Size of the disk in bytes.
    pub size: u64,
    /// The disk had no volatile cache.
    pub durable: bool,
    /// Its rows; `None` for a mark.
    pub rows: Vec<Option<Record>>,
}

impl Log {
    /// Parse a log whose data file has `data_bytes` bytes. An incomplete last row, as a killed server leaves it, is
    /// ignored.
    pub fn parse(bytes: &[u8], data_bytes: u64) -> Result<Self, String> {
        let size = read_header(bytes).ok_or("it has no header of this version")?;
        let mut left = data_bytes;
        let rows = bytes[RECORD..].chunks_exact(RECORD).enumerate().map(|(number, bytes)| {
            let row = Record::from_bytes(bytes);
            let mut whole = row.map_or(Mark::from_bytes(bytes).is_some(), |row| row.fits(size, data_bytes));
            if let Some(row) = row.filter(|row| row.changes() && row.data != NO_DATA) {
                let rest = left.checked_sub(row.length.into());
                whole &= rest.is_some();
                left = rest.unwrap_or(0);
            }
            if whole { Ok(row) } else { Err(format!("row {number} is damaged")) }
        });
        let durable = u32_at(bytes, 32) & DURABLE != 0;
        Ok(Self { size, durable, rows: rows.collect::<Result<_, _>>()? })
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("bug: eight bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("bug: four bytes"))
}

/// Value of the `op` byte of a mark, which is not a request.
const MARK: u8 = 4;

/// A named point in the log, set through the control socket: the start of a phase of the work, or the moment at which a
/// program reported data as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Index of its name.
    pub number: u64,
    /// Time, in drive time.
    pub at: Nanos,
}

impl Mark {
    /// Return the bytes of its record. `number` takes the place of a request's first byte.
    pub fn to_bytes(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        for (chunk, number) in bytes.chunks_exact_mut(8).zip([0, self.at, self.at, self.number, NO_DATA]) {
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        bytes[50] = MARK;
        bytes
    }

    /// Parse 64 bytes; `None` if they are not a mark.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes[50] == MARK).then(|| Self { number: u64_at(bytes, 24), at: u64_at(bytes, 8) })
    }
}

const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Flush, Op::Discard];

impl Record {
    /// Return whether the request changed the disk and the log contains the change.
    pub fn changes(&self) -> bool {
        let known = self.op == Op::Discard || (self.op == Op::Write && self.data != NO_DATA);
        known && self.flags & FAILED == 0
    }

    /// Return whether its change is within a disk of `size` bytes, and its data within a data file of `data_bytes`
    /// bytes.
    fn fits(&self, size: u64, data_bytes: u64) -> bool {
        let within = |start: u64, end| start.checked_add(self.length.into()).is_some_and(|last| last <= end);
        !self.changes()
            || (within(self.offset, size) && (self.data == NO_DATA || within(self.data, data_bytes)))
    }

    /// Return the bytes of the record.
    pub fn to_bytes(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let numbers = [self.id, self.submitted, self.completed, self.offset, self.data];
        for (chunk, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        bytes[40..44].copy_from_slice(&self.length.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[48..50].copy_from_slice(&self.phase.to_le_bytes());
        bytes[50] = self.op as u8;
        bytes[51] = self.flags;
        bytes
    }

    /// Parse 64 bytes; `None` if they are not a request.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            id: u64_at(bytes, 0),
            submitted: u64_at(bytes, 8),
            completed: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            data: u64_at(bytes, 32),
            length: u32_at(bytes, 40),
            epoch: u32_at(bytes, 44),
            phase: u16::from_le_bytes([bytes[48], bytes[49]]),
            op: *OPS.get(usize::from(bytes[50]))?,
            flags: bytes[51],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(op: Op, id: u64, submitted: Nanos, completed: Nanos) -> Record {
        Record {
            id,
            submitted,
            completed,
            offset: 4096,
            data: NO_DATA,
            length: 512,
            epoch: 3,
            phase: 2,
            op,
            flags: 1,
        }
    }

    #[test]
    fn a_record_survives() {
        for op in OPS {
            let record = record(op, 9, 1, 2);
            assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        }
        assert_eq!(read_header(&header(1 << 30, 5, false)), Some(1 << 30));
        assert_eq!(read_header(&[0; 64]), None);
    }

    fn parse(record: Record) -> Result<Log, String> {
        Log::parse(&[header(1 << 20, 0, false), record.to_bytes()].concat(), 4096)
    }

    #[test]
    fn a_row_that_leads_elsewhere_is_damaged() {
        let write = Record { data: 0, flags: 0, ..record(Op::Write, 1, 0, 1) };
        assert_eq!(parse(write).unwrap().rows, [Some(write)]);
        for (offset, data, length) in [
            (1 << 20, 0, 1),
            (u64::MAX - 100, 0, 512),
            (0, 4000, 512),
            (0, u64::MAX - 1, 512),
            (0, 0, 1 << 31),
        ] {
            let row = Record { offset, data, length, ..write };
            assert_eq!(parse(row).unwrap_err(), "row 0 is damaged", "{row:?}");
            assert!(parse(Record { flags: FAILED, ..row }).is_ok(), "it changed nothing");
        }
        let rows = |length| {
            let row = Record { length, ..write }.to_bytes();
            Log::parse(&[header(1 << 20, 0, false), row, row].concat(), 4096)
        };
        assert!(rows(2048).is_ok());
        assert_eq!(rows(2049).unwrap_err(), "row 1 is damaged", "both have the same data");
        let mut unknown = write.to_bytes();
        unknown[50] = 9;
        assert!(Log::parse(&[header(1 << 20, 0, false), unknown].concat(), 4096).is_err());
        assert!(Log::parse(&header(LARGEST_DISK + 1, 0, false), 0).is_err());
        assert!(Log::parse(&[header(1 << 20, 0, false).as_slice(), &unknown[..30]].concat(), 0).is_ok());
    }

    #[test]
    fn a_mark_is_no_request() {
        let mark = Mark { number: 7, at: 9 };
        assert_eq!(Mark::from_bytes(&mark.to_bytes()), Some(mark));
        assert_eq!(Record::from_bytes(&mark.to_bytes()), None);
        assert_eq!(Mark::from_bytes(&record(Op::Flush, 1, 0, 1).to_bytes()), None);
    }
}
