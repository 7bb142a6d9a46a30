//! Models of hard disks and SSDs in virtual time.
//!
//! No module reads a clock, sleeps, or does I/O. A drive receives requests with their arrival times and returns events
//! with their times. The same requests at the same times with the same seed give the same events, to the nanosecond.

pub mod array;
pub mod drive;
pub mod fault;
pub mod hdd;
pub mod log;

pub mod plain;
pub mod predict;
pub mod profile;
pub mod ssd;
pub mod states;
pub mod store;
pub mod volatile;

/// Nanoseconds of drive time.
pub type Nanos = u64;

/// Bytes of a sector, the unit of positions and lengths.
pub const SECTOR: u64 = 512;

/// Bytes of a page, the unit in which data is stored.
pub const PAGE: usize = 4096;

/// Sectors of a page.
pub const PAGE_SECTORS: u64 = PAGE as u64 / SECTOR;

/// Convert a number of this disk to an index. No disk has 2^63 bytes, so it always fits.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).expect("bug: a number of this disk fits the machine's word")
}
