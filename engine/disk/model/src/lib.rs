//! Models of hard disks and SSDs in virtual time.
//!
//! Nothing here reads a clock, sleeps, or does I/O: a drive is told what is asked of it and when, and answers when that
//! is done. The same requests at the same times with the same seed give the same answers, to the nanosecond.

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

/// Nanoseconds of the drive's own time.
pub type Nanos = u64;

/// Bytes of a sector: the unit in which places and lengths are counted.
pub const SECTOR: u64 = 512;

/// Bytes of a page: the unit in which data is kept.
pub const PAGE: usize = 4096;

/// Sectors of a page.
pub const PAGE_SECTORS: u64 = PAGE as u64 / SECTOR;

/// The request's number as a signed length that fits: no disk has 2^63 bytes.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).expect("bug: a number of this disk fits the machine's word")
}
