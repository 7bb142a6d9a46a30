//! A buffer whose start is at a page boundary, as `O_DIRECT` needs it.

use crate::error::Result;
use crate::memory;

/// The boundary: large enough for any device's blocks.
const PAGE: usize = 4096;

/// Some bytes that start at a page boundary.
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
        let bytes = memory::zeroed(length.saturating_add(PAGE))?;
        let start = bytes.as_ptr().align_offset(PAGE);
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
