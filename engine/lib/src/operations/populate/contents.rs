//! The contents of each file: a signature, a unique line, then text or random bytes that no other file has, with the
//! patterns inserted. Only a copy has the same contents as its original.

use memchr::memmem::Finder;

use super::plan::{Plan, Planned, TYPES};
use super::spec::SMALLEST_FILE;
use crate::contents::{self, BLOCK};
use crate::error::{Error, Result};
use crate::kinds::Kind;
use crate::random::mix;

/// Maximum number of bytes per write.
pub(super) const PIECE: usize = 1 << 20;
const LINE: usize = 80;
/// Minimum number of random bytes in each block for any compressibility, so that no two blocks are equal.
const LEAST: usize = 32;
/// A byte that no pattern contains.
const BREAK: u8 = b'\n';

/// The data from which the contents of all files are made.
pub(super) struct Contents {
    random: contents::Contents,
    patterns: Vec<Finder<'static>>,
    /// Number of random bytes in each block. The rest of the block is one constant byte.
    of_each: usize,
    seed: u64,
}

impl Contents {
    /// Create the contents for this plan. Fails if a pattern is part of a signature, because the manifest could not
    /// count such matches.
    pub(super) fn new(plan: &Plan<'_>) -> Result<Self> {
        let spec = plan.spec;
        let patterns: Vec<_> = spec.patterns.iter().map(|one| Finder::new(&one.text).into_owned()).collect();
        for (pattern, finder) in spec.patterns.iter().zip(&patterns) {
            if let Some(file_type) = TYPES.iter().find(|one| finder.find(one.signature).is_some()) {
                let (text, extension) = (&pattern.text, file_type.extension);
                let message =
                    format!("pattern '{text}' is in the signature of .{extension} files; choose another one");
                return Err(Error::Invalid(message));
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a block")]
        let of_each = (BLOCK as f64 * (1.0 - spec.compressibility)) as usize;
        let random = contents::Contents::new(spec.seed);
        Ok(Self { random, patterns, of_each: of_each.clamp(LEAST, BLOCK), seed: spec.seed })
    }

    /// Call `write` with the contents of a file in pieces of up to [`PIECE`] bytes. `buffer` must hold one piece.
    pub(super) fn write<E>(
        &self,
        plan: &Plan<'_>,
        file: &Planned,
        buffer: &mut [u8],
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let planted = planted(plan, file);
        let mut offset = 0;
        while offset < file.size {
            let length = usize::try_from(file.size - offset).map_or(PIECE, |left| left.min(PIECE));
            let piece = &mut buffer[..length];
            self.fill(file, offset, piece);
            let end = offset + length as u64;
            for (place, text) in &planted {
                if *place < end && place + text.len() as u64 + 2 > offset {
                    plant(piece, offset, *place, text);
                }
            }
            write(piece)?;
            offset = end;
        }
        Ok(())
    }

    /// Fill a piece with contents in which no pattern occurs. If one occurs by chance, its first byte is replaced by a
    /// newline. The last byte of each line of text and of each piece is also a newline.
    fn fill(&self, file: &Planned, offset: u64, piece: &mut [u8]) {
        let (identity, block) = (u64::from(file.identity), offset / BLOCK as u64);
        if TYPES[usize::from(file.kind)].kind == Kind::Text {
            piece.fill(b'x');
            self.random.fill_text(identity, block, piece, self.of_each);
            piece.chunks_mut(LINE).filter_map(|line| line.last_mut()).for_each(|last| *last = BREAK);
        } else {
            piece.fill(0);
            self.random.fill_with(identity, block, piece, self.of_each, |word| word);
        }
        if let Some(last) = piece.last_mut() {
            *last = BREAK;
        }
        let unique = if offset == 0 { self.sign(file, piece) } else { 0 };
        for pattern in &self.patterns {
            let mut from = unique;
            while let Some(at) = pattern.find(&piece[from..]) {
                piece[from + at] = BREAK;
                from += at + 1;
            }
        }
    }

    /// Write the signature of the type and a line that no other file has. Returns the offset of that line.
    fn sign(&self, file: &Planned, piece: &mut [u8]) -> usize {
        let signature = TYPES[usize::from(file.kind)].signature;
        let identity = u64::from(file.identity);
        let unique = format!("{:016x}{identity:016x}\n", mix(self.seed ^ mix(identity)));
        let (head, rest) = piece.split_at_mut(signature.len());
        head.copy_from_slice(signature);
        rest[..unique.len()].copy_from_slice(unique.as_bytes());
        signature.len()
    }
}

fn planted<'a>(plan: &Plan<'a>, file: &Planned) -> Vec<(u64, &'a [u8])> {
    let patterns = plan.spec.patterns.iter().enumerate();
    let hits = patterns.flat_map(|(index, pattern)| {
        plan.places(index, file).into_iter().map(|place| (place, pattern.text.as_bytes()))
    });
    debug_assert!(file.size >= SMALLEST_FILE);
    hits.collect()
}

/// Write a newline, the text and a newline at the offset `place` of the file, as far as they are inside this piece.
fn plant(piece: &mut [u8], offset: u64, place: u64, text: &[u8]) {
    let line = [b"\n", text, b"\n"].concat();
    for (byte, at) in line.into_iter().zip(place..) {
        let target = at.checked_sub(offset).and_then(|at| piece.get_mut(usize::try_from(at).ok()?));
        if let Some(target) = target {
            *target = byte;
        }
    }
}
