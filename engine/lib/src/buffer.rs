//! A buffer that starts where `O_DIRECT` needs it.

use crate::error::Result;
use crate::memory;

/// What its address is a multiple of: the largest block that Linux knows of any device.
pub const ALIGNMENT: usize = 64 << 10;

/// Some bytes that start at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// A buffer of this many zeros.
    ///
    /// # Errors
    /// Of the kind `no_memory`.
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
