//! The bytes of each file: a signature, what makes it unique, then stretches of a pool of text or of
//! random bytes, with the patterns planted in them.

use super::plan::{Plan, Planned, TYPES};
use super::spec::SMALLEST_FILE;
use crate::error::{Error, Result};
use crate::kinds::Kind;
use crate::random::{Stream, mix};

/// How much is written at once.
pub(super) const PIECE: usize = 1 << 20;
/// How far apart two stretches may start.
const SPREAD: u64 = 256 << 10;
const LINE: usize = 80;
const BLOCK: usize = 4096;
const FOR_POOLS: u64 = 1 << 59;
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";

/// What all files are cut from.
pub(super) struct Pools {
    text: Vec<u8>,
    binary: Vec<u8>,
    seed: u64,
}

impl Pools {
    /// Makes the pools; a pattern that they hold by chance could not be counted.
    pub(super) fn new(plan: &Plan<'_>) -> Result<Self> {
        let spec = plan.spec;
        let size = PIECE + usize::try_from(SPREAD).unwrap_or(PIECE);
        let mut stream = Stream::new(spec.seed, FOR_POOLS);
        let mut binary = vec![0; size];
        let mut text = vec![b'x'; size];
        for block in binary.chunks_mut(BLOCK) {
            stream.fill(random_part(block, spec.compressibility));
        }
        for line in text.chunks_mut(LINE) {
            for byte in random_part(line, spec.compressibility) {
                *byte = LETTERS[usize::try_from(stream.below(64)).unwrap_or(0)];
            }
            if let Some(last) = line.last_mut() {
                *last = b'\n';
            }
        }
        for pattern in &spec.patterns {
            let needle = pattern.text.as_bytes();
            if memchr::memmem::find(&text, needle).or(memchr::memmem::find(&binary, needle)).is_some() {
                let message = format!("pattern '{}' occurs by chance; choose a longer one", pattern.text);
                return Err(Error::Invalid(message));
            }
        }
        Ok(Self { text, binary, seed: spec.seed })
    }

    /// Calls `write` with the contents of a file, piece by piece.
    pub(super) fn write<E>(
        &self,
        plan: &Plan<'_>,
        file: &Planned,
        buffer: &mut Vec<u8>,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let planted = planted(plan, file);
        let mut offset = 0;
        while offset < file.size {
            let length = usize::try_from(file.size - offset).map_or(PIECE, |left| left.min(PIECE));
            let pool = self.stretch(file, offset, length);
            let end = offset + length as u64;
            let inside =
                |(place, text): &&(u64, &[u8])| *place < end && place + text.len() as u64 + 2 > offset;
            if offset > 0 && !planted.iter().any(|hit| inside(&hit)) {
                write(pool)?;
            } else {
                buffer.clear();
                buffer.extend_from_slice(pool);
                if offset == 0 {
                    self.sign(file, buffer);
                }
                for (place, text) in planted.iter().filter(inside) {
                    plant(buffer, offset, *place, text);
                }
                write(buffer)?;
            }
            offset = end;
        }
        Ok(())
    }

    fn stretch(&self, file: &Planned, offset: u64, length: usize) -> &[u8] {
        let identity = u64::from(file.identity);
        let start = mix(self.seed ^ mix(identity) ^ mix(offset)) % SPREAD;
        let start = usize::try_from(start).unwrap_or(0);
        let is_text = TYPES[usize::from(file.kind)].kind == Kind::Text;
        let pool = if is_text { &self.text } else { &self.binary };
        &pool[start..start + length]
    }

    /// The signature of the type, and a line that no other file has.
    fn sign(&self, file: &Planned, buffer: &mut [u8]) {
        let signature = TYPES[usize::from(file.kind)].signature;
        let identity = u64::from(file.identity);
        let unique = format!("{:016x}{identity:016x}\n", mix(self.seed ^ mix(identity)));
        let (head, rest) = buffer.split_at_mut(signature.len());
        head.copy_from_slice(signature);
        rest[..unique.len()].copy_from_slice(unique.as_bytes());
    }
}

/// The part of a stretch that is random; the rest stays the same.
fn random_part(stretch: &mut [u8], compressibility: f64) -> &mut [u8] {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let random = (stretch.len() as f64 * (1.0 - compressibility)) as usize;
    let end = random.min(stretch.len());
    &mut stretch[..end]
}

fn planted<'a>(plan: &Plan<'a>, file: &Planned) -> Vec<(u64, &'a [u8])> {
    let patterns = plan.spec.patterns.iter().enumerate();
    let hits = patterns.flat_map(|(index, pattern)| {
        plan.places(index, file).into_iter().map(|place| (place, pattern.text.as_bytes()))
    });
    debug_assert!(file.size >= SMALLEST_FILE);
    hits.collect()
}

/// Writes newline, text, newline at `place` of the file, as far as it lies within this piece.
fn plant(piece: &mut [u8], offset: u64, place: u64, text: &[u8]) {
    let line = [b"\n", text, b"\n"].concat();
    for (byte, at) in line.into_iter().zip(place..) {
        let target = at.checked_sub(offset).and_then(|at| piece.get_mut(usize::try_from(at).ok()?));
        if let Some(target) = target {
            *target = byte;
        }
    }
}
