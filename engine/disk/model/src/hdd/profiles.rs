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
    /// Shingled tracks; `None` if each track can be written alone.
    pub shingles: Option<Shingles>,
    /// Sources. Values that are not named there are typical of the class.
    pub sources: &'static str,
}

/// Shingled tracks, which the drive manages itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shingles {
    /// Bytes of a band. Within a band, a track can only be written if all later tracks are written again.
    pub band: u64,
    /// Bytes of the persistent cache on the disk.
    pub cache: u64,
    /// Maximum number of extents in the persistent cache.
    pub extents: usize,
    /// Time without requests, in ms, after which the drive starts to clean the persistent cache.
    pub idle_ms: f64,
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
    shingles: None,
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

/// 10,000 rpm.
const HDD_10K: Profile = Profile {
    name: "hdd-10k",
    about: "10,000 rpm SAS, 1.2 TB, 110-200 MB/s, 3.8 ms",
    capacity: 1200 * GB,
    rpm: 10_000.0,
    heads: 8,
    outer_mb_s: 200.0,
    inner_mb_s: 110.0,
    track_ms: 0.3,
    average_ms: 3.8,
    full_ms: 8.0,
    write_extra_ms: 0.4,
    head_switch_ms: 0.5,
    command_us: 50.0,
    bus_mb_s: 600.0,
    buffer: 64 << 20,
    cache: Cache::None,
    sources: "Usual for 2.5-inch 10,000 rpm SAS drives of 2013 (class of Seagate ST1200MM0007, HGST Ultrastar C10K); write \
              cache off, as enterprise drives are delivered",
    ..HDD_7200
};

/// 15,000 rpm.
const HDD_15K: Profile = Profile {
    name: "hdd-15k",
    about: "15,000 rpm SAS, 600 GB, 150-250 MB/s, 2.9 ms",
    capacity: 600 * GB,
    rpm: 15_000.0,
    heads: 6,
    outer_mb_s: 250.0,
    inner_mb_s: 150.0,
    track_ms: 0.25,
    average_ms: 2.9,
    full_ms: 6.5,
    write_extra_ms: 0.2,
    head_switch_ms: 0.4,
    command_us: 50.0,
    bus_mb_s: 600.0,
    buffer: 128 << 20,
    cache: Cache::None,
    sources: "HGST, Ultrastar C15K600 specification: 15,030 rpm, average seek 2.9 ms read, 3.1 ms write. Usual for the \
              class: the rest; write cache off, as enterprise drives are delivered",
    ..HDD_7200
};

/// 5900 rpm with shingled tracks that the drive manages.
const HDD_SMR: Profile = Profile {
    name: "hdd-smr",
    about: "5900 rpm SATA SMR, 8 TB, 90-190 MB/s, 12 ms; a persistent cache of 25 GB, bands of 30 MiB",
    capacity: 8000 * GB,
    rpm: 5900.0,
    heads: 12,
    outer_mb_s: 190.0,
    inner_mb_s: 90.0,
    track_ms: 1.0,
    average_ms: 12.0,
    full_ms: 25.0,
    head_switch_ms: 1.0,
    shingles: Some(Shingles { band: 30 << 20, cache: 25 * GB, extents: 250_000, idle_ms: 1000.0 }),
    sources: "Seagate, Archive HDD v2 data sheet (ST8000AS0002): 5900 rpm class, at most 190 MB/s, 128 MB, drive-managed \
              SMR. Aghayev, Shafaei, Desnoyers: Skylight, ACM Transactions on Storage 11(4), 2015: order of size of bands \
              (15-40 MiB), of the persistent cache and its map, cleaning after about a second without requests, 0.6-1.6 s \
              a band. Usual for the class: the rest",
    ..HDD_7200
};

/// All profiles of hard disks.
pub const PROFILES: &[Profile] = &[HDD_7200, HDD_5400, HDD_10K, HDD_15K, HDD_SMR];
