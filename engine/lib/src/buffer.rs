//! A buffer whose start is at a page boundary, as `O_DIRECT` needs it.

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
    /// A buffer of this many bytes.
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE);
        Self { bytes, start, length }
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
