//! Profiles of SSDs. Parameters that data sheets do not give (controller times, program times, spare flash) are derived
//! from the published performance of the whole drive.

use serde::Serialize;

use crate::drive::Cache;

/// The parameters of an SSD.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Profile {
    /// Name, as given to `--profile`.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Bytes of the drive that the values are from.
    pub capacity: u64,
    /// Spare flash, as a share of the capacity that the host sees.
    pub spare: f64,
    /// Channels between controller and flash.
    pub channels: u32,
    /// Dies on all channels together.
    pub dies: u32,
    /// Planes of a die that are programmed together.
    pub planes: u32,
    /// Bytes of a flash page of one plane.
    pub flash_page: u64,
    /// Bytes of an erase block of one plane.
    pub block: u64,
    /// Time to sense a page, in µs. All other times are in µs too.
    pub read_us: f64,
    /// Time to program a page of all planes.
    pub program_us: f64,
    /// Time to program a page of all planes in the SLC cache.
    pub slc_program_us: f64,
    /// Time to erase a block.
    pub erase_us: f64,
    /// Delay until a read suspends a running program.
    pub suspend_us: f64,
    /// Transfer rate of a channel, 10⁶ B/s.
    pub channel_mb_s: f64,
    /// Latency of a read in the controller and the interface.
    pub read_command_us: f64,
    /// Shortest time between two reads.
    pub read_gap_us: f64,
    /// Latency of a write in the controller and the interface.
    pub write_command_us: f64,
    /// Shortest time between two writes.
    pub write_gap_us: f64,
    /// Transfer rate of the host interface for reads, 10⁶ B/s.
    pub bus_read_mb_s: f64,
    /// Transfer rate of the host interface for writes, 10⁶ B/s.
    pub bus_write_mb_s: f64,
    /// Bytes of the write buffer.
    pub buffer: u64,
    /// Size of the SLC cache, as a share of the capacity.
    pub slc: f64,
    /// Queue depth of the drive.
    pub queue: usize,
    /// Kind of write cache: what a power cut does to the buffer.
    pub cache: Cache,
    /// Rated lifetime writes, in bytes.
    pub endurance: u64,
    /// Sources. Values that are not named there are typical of the class or derived from the others.
    pub sources: &'static str,
}

const TB: u64 = 1_000_000_000_000;

/// Consumer SATA SSD.
const SATA: Profile = Profile {
    name: "ssd-sata",
    about: "SATA consumer TLC, 1 TB, 560/530 MB/s, reads 13k at depth 1, 98k at 32",
    capacity: TB,
    spare: 0.073,
    channels: 8,
    dies: 16,
    planes: 2,
    flash_page: 16 << 10,
    block: 9 << 20,
    read_us: 45.0,
    program_us: 700.0,
    slc_program_us: 250.0,
    erase_us: 5000.0,
    suspend_us: 50.0,
    channel_mb_s: 800.0,
    read_command_us: 19.5,
    read_gap_us: 10.2,
    write_command_us: 20.0,
    write_gap_us: 11.3,
    bus_read_mb_s: 560.0,
    bus_write_mb_s: 530.0,
    buffer: 32 << 20,
    slc: 0.042,
    queue: 32,
    cache: Cache::Volatile,
    endurance: 600 * TB,
    sources: "Samsung, 870 EVO 1 TB data sheet: 560/530 MB/s; 4 KiB reads 13k IOPS at depth 1, 98k at 32; writes 36k, 88k; \
              600 TB written; 42 GB SLC. Parts follow from these; flash times usual for 3D TLC",
};

/// Consumer `NVMe` SSD.
const NVME: Profile = Profile {
    name: "ssd-nvme",
    about: "NVMe consumer TLC, 1 TB, 3.5/3.3 GB/s (1.7 behind the SLC cache), reads 19k at depth 1",
    dies: 32,
    read_us: 40.0,
    program_us: 610.0,
    slc_program_us: 200.0,
    channel_mb_s: 1200.0,
    read_command_us: 8.0,
    read_gap_us: 1.67,
    write_command_us: 15.4,
    write_gap_us: 1.8,
    bus_read_mb_s: 3500.0,
    bus_write_mb_s: 3300.0,
    buffer: 64 << 20,
    queue: 1024,
    sources: "Samsung, 970 EVO Plus 1 TB data sheet: 3500/3300 MB/s, 1700 MB/s behind an SLC cache of 42 GB; 4 KiB reads 19k \
              IOPS at depth 1, 600k at 32; writes 60k, 550k; 600 TB written. Parts follow from these",
    ..SATA
};

/// Data-centre `NVMe` SSD with power-loss protection.
const NVME_DC: Profile = Profile {
    name: "ssd-nvme-dc",
    about: "NVMe data-centre TLC with power-loss protection, 1 TB, 3.2/0.6 GB/s, 85/20 µs",
    spare: 0.15,
    dies: 16,
    read_us: 60.0,
    program_us: 870.0,
    slc_program_us: 870.0,
    suspend_us: 20.0,
    read_command_us: 18.5,
    read_gap_us: 3.58,
    write_command_us: 18.8,
    write_gap_us: 3.6,
    bus_read_mb_s: 3200.0,
    bus_write_mb_s: 3200.0,
    buffer: 16 << 20,
    slc: 0.0,
    queue: 1024,
    cache: Cache::Protected,
    endurance: 1380 * TB,
    sources: "Intel, SSD DC P4500 1.0 TB (as in Lenovo's product guide): 3.2/0.6 GB/s, 4 KiB reads 279.5k, writes 30.5k IOPS, \
              random access 85/20 µs, 1.38 PB written. Parts follow from these",
    ..SATA
};

/// SD card.
const SD: Profile = Profile {
    name: "sd-a1",
    about: "SD card of class A1: 1500/500 IOPS, 10 MB/s written",
    capacity: 64_000_000_000,
    spare: 0.05,
    channels: 1,
    dies: 1,
    planes: 1,
    read_us: 80.0,
    program_us: 1450.0,
    slc_program_us: 1450.0,
    erase_us: 8000.0,
    suspend_us: 5000.0,
    channel_mb_s: 200.0,
    read_command_us: 520.0,
    read_gap_us: 500.0,
    write_command_us: 480.0,
    write_gap_us: 400.0,
    bus_read_mb_s: 90.0,
    bus_write_mb_s: 90.0,
    buffer: 256 << 10,
    slc: 0.0,
    queue: 1,
    cache: Cache::None,
    endurance: 20 * TB,
    sources: "SD Association, physical layer specification 5.1: class A1 reads 1500, writes 500 IOPS of 4 KiB, 10 MB/s \
              sustained. Parts follow from these",
    ..SATA
};

/// All profiles of SSDs.
pub const PROFILES: &[Profile] = &[SATA, NVME, NVME_DC, SD];
