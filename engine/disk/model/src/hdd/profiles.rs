//! Profiles of hard disks. Each profile names the sources of its values.

use serde::Serialize;

use crate::drive::Cache;

/// The parameters of a hard disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Profile {
    /// Name, as given to `--profile`.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Capacity in bytes.
    pub capacity: u64,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Recording surfaces.
    pub heads: u64,
    /// Sustained rate on the outermost tracks, 10⁶ B/s.
    pub outer_mb_s: f64,
    /// Sustained rate on the innermost tracks, 10⁶ B/s.
    pub inner_mb_s: f64,
    /// Time of a seek to the next track, ms.
    pub track_ms: f64,
    /// Average time of a read seek, ms.
    pub average_ms: f64,
    /// Time of a full-stroke seek, ms.
    pub full_ms: f64,
    /// Additional time of a write seek, ms: the head must settle more precisely.
    pub write_extra_ms: f64,
    /// Time to switch to another head of the same cylinder, ms.
    pub head_switch_ms: f64,
    /// The controller's time per command, µs.
    pub command_us: f64,
    /// Transfer rate of the interface, 10⁶ B/s.
    pub bus_mb_s: f64,
    /// Queue depth of the drive.
    pub queue: usize,
    /// Minimum time, in ms, from the end of a seek to its sector. A seek that ends later waits for another revolution.
    pub margin_ms: f64,
    /// Bytes of the drive's memory.
    pub buffer: u64,
    /// Kind of write cache as delivered.
    pub cache: Cache,
    /// Sources. Values that are not named there are typical of the class.
    pub sources: &'static str,
}

const GB: u64 = 1_000_000_000;

/// 7200 rpm, desktop and nearline.
const HDD_7200: Profile = Profile {
    name: "hdd-7200",
    about: "7200 rpm SATA, 1 TB, 83-175 MB/s, 8.5 ms",
    capacity: 1000 * GB,
    rpm: 7200.0,
    heads: 3,
    outer_mb_s: 175.0,
    inner_mb_s: 83.0,
    track_ms: 0.8,
    average_ms: 8.5,
    full_ms: 17.5,
    write_extra_ms: 1.0,
    head_switch_ms: 0.7,
    command_us: 100.0,
    bus_mb_s: 550.0,
    queue: 32,
    margin_ms: 0.3,
    buffer: 128 << 20,
    cache: Cache::Volatile,
    sources: "Seagate, Constellation ES.3 product manual (ST1000NM0033 family): 7200 rpm, 3 heads at 1 TB, 83-175 MB/s \
              sustained, 320,800 tracks a surface, 128 MB. Hitachi, Deskstar 7K1000.C specification: average seek 8.5 ms \
              read, 9.5 ms write. Usual for the class: track to track, full stroke, head switch, command time, margin",
};

/// 5400 rpm, for network-attached storage.
const HDD_5400: Profile = Profile {
    name: "hdd-5400",
    about: "5400 rpm SATA NAS, 4 TB, 65-150 MB/s, 11.5 ms",
    capacity: 4000 * GB,
    rpm: 5400.0,
    heads: 8,
    outer_mb_s: 150.0,
    inner_mb_s: 65.0,
    track_ms: 1.0,
    average_ms: 11.5,
    full_ms: 24.0,
    write_extra_ms: 1.0,
    head_switch_ms: 1.0,
    buffer: 64 << 20,
    sources: "Western Digital, WD Red data sheet (WD40EFRX): 5400 rpm class, 150 MB/s, 64 MB. Hitachi, 5K320 specification \
              (5400 rpm): average seek 12 ms, one track 1.0 ms, write 1 ms more. Usual for the class: the rest",
    ..HDD_7200
};

/// All profiles of hard disks.
pub const PROFILES: &[Profile] = &[HDD_7200, HDD_5400];
