//! Buffers aligned for `O_DIRECT`.

use crate::error::Result;
use crate::memory;

/// Alignment of the address in bytes: the largest block size of a block device that Linux supports.
pub const ALIGNMENT: usize = 64 << 10;

/// A buffer whose address is a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// Create a buffer of `length` zero bytes. Its pages are already allocated.
    ///
    /// # Errors
    /// Kind `no_memory` if the allocation fails.
    pub fn new(length: usize) -> Result<Self> {
        let bytes = memory::zeroed(length.saturating_add(ALIGNMENT))?;
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Ok(Self { bytes, start, length })
    }
}

impl AsMut<[u8]> for AlignedBuffer {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}
