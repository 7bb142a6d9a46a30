//! Little-endian numbers in the messages of FUSE, vhost-user and virtio.

/// Return the number in the four bytes from `at`; `None` if there are fewer.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|part| u32::from_le_bytes(part.try_into().expect("bug: four bytes")))
}

/// Return the number in the eight bytes from `at`; `None` if there are fewer.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|part| u64::from_le_bytes(part.try_into().expect("bug: eight bytes")))
}
