//! The virtio block device (Virtual I/O Device 1.2, section 5.2): its features, its configuration, and the requests in
//! descriptor chains. It must not depend on sockets or drives.

use std::io::{self, Read, Write};
use std::ops::Deref;

use fslab_disk_model::SECTOR;
use virtio_queue::DescriptorChain;
use vm_memory::GuestMemoryMmap;

use crate::fuse::Io;
use crate::little_endian::{u32_at, u64_at};

/// Descriptors of the queue: the maximum that User-Mode Linux uses.
pub(crate) const QUEUE_SIZE: u16 = 256;
/// Largest request in bytes. A larger one is rejected. Linux sends at most 1,280 KiB.
pub(crate) const MAX_BYTES: usize = 4 << 20;
const HEADER: usize = 16;
const RANGE: usize = 16;
const ID_BYTES: usize = 20;
const MAX_RANGE_SECTORS: u32 = 1 << 21;

const SEG_MAX: u64 = 1 << 2;
const BLK_SIZE: u64 = 1 << 6;
const FLUSH: u64 = 1 << 9;
const TOPOLOGY: u64 = 1 << 10;
const DISCARD: u64 = 1 << 13;
const WRITE_ZEROES: u64 = 1 << 14;
const RING_INDIRECT_DESC: u64 = 1 << 28;
const VERSION_1: u64 = 1 << 32;

/// Status of a completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Ok = 0,
    Failed = 1,
    Unsupported = 2,
}

/// The request in a descriptor chain.
#[derive(Debug)]
pub(crate) enum Asked {
    /// I/O, with the data of a write.
    Io(Io, Vec<u8>),
    /// A request for the serial number.
    Id,
    /// A request without I/O, and the status to return.
    Answer(Status),
}

/// Return the feature bits of the device. A hard disk has no discard. For it, `WRITE_ZEROES` saves only memory, not
/// time.
pub(crate) fn features(discards: bool) -> u64 {
    let always = VERSION_1 | RING_INDIRECT_DESC | SEG_MAX | BLK_SIZE | TOPOLOGY | FLUSH | WRITE_ZEROES;
    if discards { always | DISCARD } else { always }
}

/// Return `struct virtio_blk_config` of a disk of `bytes` bytes, with sectors of 512 bytes and physical blocks of 4
/// KiB.
pub(crate) fn configuration(bytes: u64) -> [u8; 60] {
    let mut out = [0; 60];
    let mut put = |at: usize, value: &[u8]| out[at..at + value.len()].copy_from_slice(value);
    put(0, &(bytes / SECTOR).to_le_bytes());
    put(12, &u32::from(QUEUE_SIZE - 2).to_le_bytes()); // segments: the header and the status use two descriptors
    put(20, &512u32.to_le_bytes());
    put(24, &[3]); // a physical block is 2^3 sectors
    put(34, &1u16.to_le_bytes());
    for at in [36, 48] {
        put(at, &MAX_RANGE_SECTORS.to_le_bytes());
        put(at + 4, &1u32.to_le_bytes());
    }
    put(44, &8u32.to_le_bytes());
    put(56, &[1]);
    out
}

/// Parse the request in a chain, for a disk of `size` bytes. After an error the chain cannot be answered: it is not a
/// valid request.
pub(crate) fn asked<M>(chain: DescriptorChain<M>, memory: &GuestMemoryMmap, size: u64) -> io::Result<Asked>
where
    M: Deref<Target = GuestMemoryMmap> + Clone,
{
    let room = chain.clone().writer(memory).map_err(io::Error::other)?.available_bytes() as u64;
    let mut reader = chain.reader(memory).map_err(io::Error::other)?;
    let mut header = [0; HEADER];
    reader.read_exact(&mut header)?;
    let (kind, offset) =
        (u32_at(&header, 0).unwrap_or(0), u64_at(&header, 8).unwrap_or(0).checked_mul(SECTOR));
    let data = reader.available_bytes() as u64;
    let length = if kind == 0 { room.saturating_sub(1) } else { data };
    let inside = |length: u64| offset.and_then(|at| at.checked_add(length)).is_some_and(|end| end <= size);
    if room == 0 {
        return Err(io::Error::other("the guest's request has no room for a status byte"));
    }
    let io = match kind {
        0 | 1 if length == 0 => return Ok(Asked::Answer(Status::Ok)), // the models have no empty requests
        0 | 1 if length > MAX_BYTES as u64 || length % SECTOR != 0 || !inside(length) => return Ok(failed()),
        0 => Io::Read { offset: offset.unwrap_or(0), length: u32::try_from(length).unwrap_or(0) },
        1 => {
            let mut buffer = vec![0; usize::try_from(length).unwrap_or(0)];
            reader.read_exact(&mut buffer)?;
            let length = u32::try_from(length).unwrap_or(0);
            return Ok(Asked::Io(Io::Write { offset: offset.unwrap_or(0), length, data: 0 }, buffer));
        }
        4 => Io::Flush,
        8 => return Ok(Asked::Id),
        11 | 13 => {
            let mut range = [0; RANGE];
            reader.read_exact(&mut range)?;
            let (at, length) = (
                u64_at(&range, 0).unwrap_or(0).checked_mul(SECTOR),
                u64::from(u32_at(&range, 8).unwrap_or(0)) * SECTOR,
            );
            match at.filter(|at| at.checked_add(length).is_some_and(|end| end <= size)) {
                Some(_) if length == 0 => return Ok(Asked::Answer(Status::Ok)),
                Some(offset) if kind == 11 => Io::Discard { offset, length },
                Some(offset) => Io::Zero { offset, length },
                None => return Ok(failed()),
            }
        }
        _ => return Ok(Asked::Answer(Status::Unsupported)),
    };
    Ok(Asked::Io(io, Vec::new()))
}

/// Write an answer to a chain: the data, and the status in its last byte. Returns the bytes written.
pub(crate) fn answer<M>(
    chain: DescriptorChain<M>,
    memory: &GuestMemoryMmap,
    status: Status,
    data: &[u8],
) -> io::Result<u32>
where
    M: Deref<Target = GuestMemoryMmap> + Clone,
{
    let mut writer = chain.writer(memory).map_err(io::Error::other)?;
    let room = writer.available_bytes().checked_sub(1);
    let room = room.ok_or_else(|| io::Error::other("the guest's request has no room for a status byte"))?;
    let mut last = writer.split_at(room).map_err(io::Error::other)?;
    writer.write_all(&data[..data.len().min(room)])?;
    last.write_all(&[status as u8])?;
    u32::try_from(data.len().min(room) + 1).map_err(io::Error::other)
}

/// Return a serial number in the device's format: 20 bytes, padded with 0.
pub(crate) fn identity(serial: &str) -> [u8; ID_BYTES] {
    let mut out = [0; ID_BYTES];
    let length = serial.len().min(ID_BYTES);
    out[..length].copy_from_slice(&serial.as_bytes()[..length]);
    out
}

fn failed() -> Asked {
    Asked::Answer(Status::Failed)
}
