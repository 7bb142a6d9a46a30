//! The plan of a data set: the properties of each file. They are decided sequentially before any file is created, so
//! that they do not depend on the number of threads.

use super::spec::{Planted, SMALLEST_FILE, Spec};
use crate::error::Result;
use crate::kinds::Kind;
use crate::memory;
use crate::random::{Stream, shuffle};
use crate::room::Need;

/// Bits that separate the random numbers for different purposes.
const FOR_ORDER: u64 = 1 << 62;
const FOR_PATTERNS: u64 = 1 << 61;
const FOR_TIMES: u64 = 1 << 60;
const FOR_COPIES: u64 = 1 << 58;
const DAY: f64 = 86_400.0;

/// A file type: its kind, its extension, the first bytes of its contents, and its share of the files in percent.
pub(super) struct FileType {
    pub(super) kind: Kind,
    pub(super) extension: &'static str,
    pub(super) signature: &'static [u8],
    hundredths: u64,
}

const fn of(kind: Kind, extension: &'static str, signature: &'static [u8], hundredths: u64) -> FileType {
    FileType { kind, extension, signature, hundredths }
}

/// All file types, with shares as on a home server.
pub(super) const TYPES: [FileType; 16] = [
    of(Kind::Text, "txt", b"", 14),
    of(Kind::Text, "csv", b"", 6),
    of(Kind::Text, "json", b"", 6),
    of(Kind::Text, "html", b"<!DOCTYPE html>\n", 6),
    of(Kind::Text, "py", b"#!/usr/bin/python3\n", 4),
    of(Kind::Image, "jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0", 20),
    of(Kind::Image, "png", b"\x89PNG\r\n\x1a\n", 8),
    of(Kind::Audio, "mp3", b"ID3\x04\0", 6),
    of(Kind::Audio, "flac", b"fLaC\0", 3),
    of(Kind::Video, "mp4", b"\0\0\0\x18ftypisom", 3),
    of(Kind::Document, "pdf", b"%PDF-1.7\n", 8),
    of(Kind::Archive, "zip", b"PK\x03\x04\x14\0", 5),
    of(Kind::Archive, "gz", b"\x1f\x8b\x08\0", 3),
    of(Kind::Executable, "so", b"\x7fELF\x02\x01\x01", 4),
    of(Kind::Database, "sqlite", b"SQLite format 3\0", 2),
    of(Kind::Data, "bin", b"\0", 2),
];

/// The properties of one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) size: u64,
    /// Number of the file whose contents it has: its own number, or that of an earlier file.
    pub(super) identity: u32,
    pub(super) class: u16,
    /// Index in [`TYPES`].
    pub(super) kind: u16,
}

/// All files, in the order of their names.
pub(super) struct Plan<'a> {
    pub(super) spec: &'a Spec,
    pub(super) files: Vec<Planned>,
    depth: u32,
}

impl<'a> Plan<'a> {
    pub(super) fn new(spec: &'a Spec) -> Result<Self> {
        let count = spec.classes.iter().map(|class| spec.files_of(class)).sum();
        let mut classes = memory::room_for::<u16>("the plan of all files", count)?;
        for (class, index) in spec.classes.iter().zip(0u16..) {
            classes.extend((0..spec.files_of(class)).map(|_| index));
        }
        shuffle(&mut classes, &mut Stream::new(spec.seed, FOR_ORDER));
        let copies = copies(spec, &classes)?;
        let mut originals = vec![Vec::new(); spec.classes.len()];
        let mut files = memory::room_for::<Planned>("the plan of all files", 2 * count)?;
        for (class, index) in classes.into_iter().zip(0u32..) {
            let mut stream = Stream::new(spec.seed, index.into());
            let earlier: &mut Vec<u32> = &mut originals[usize::from(class)];
            if copies[index as usize] {
                let chosen = usize::try_from(stream.below(earlier.len() as u64)).unwrap_or(0);
                files.push(files[earlier[chosen] as usize]);
                continue;
            }
            earlier.push(index);
            files.push(original(spec, class, index, &mut stream));
        }
        let mut plan = Self { spec, files, depth: 1 };
        while spec.fanout.saturating_pow(plan.depth) < plan.directories() {
            plan.depth += 1;
        }
        Ok(plan)
    }

    /// Return the space that all files and directories need, together with `memory` bytes of buffers.
    pub(super) fn need(&self, memory: u64) -> Need {
        let mut need = Need { memory, entries: self.all_directories(), ..Need::default() };
        for (file, index) in self.files.iter().zip(0u32..) {
            need.files(1, file.size);
            // Compressed data and copies that are stored only once may need no space at all.
            let random = if file.identity == index { 1.0 - self.spec.compressibility } else { 0.0 };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a size")]
            let random = (file.size as f64 * random) as u64;
            need.least -= file.size - random.min(file.size);
        }
        need
    }

    /// Return the number of directories that contain files.
    pub(super) fn directories(&self) -> u64 {
        (self.files.len() as u64).div_ceil(self.spec.files_per_directory)
    }

    /// Return the number of all directories, including the top directory.
    pub(super) fn all_directories(&self) -> u64 {
        let last = self.directories() - 1;
        1 + (0..self.depth).map(|above| last / self.spec.fanout.pow(above) + 1).sum::<u64>()
    }

    /// Return the numbers of the files in one directory.
    pub(super) fn files_of(&self, directory: u64) -> std::ops::Range<u32> {
        let start = directory * self.spec.files_per_directory;
        let end = (start + self.spec.files_per_directory).min(self.files.len() as u64);
        u32::try_from(start).unwrap_or(u32::MAX)..u32::try_from(end).unwrap_or(u32::MAX)
    }

    /// Return the paths of the parents of a directory and of the directory itself, relative to the top directory and
    /// without it. Parents come first.
    pub(super) fn directory_paths(&self, directory: u64) -> Vec<String> {
        let digit = |above| directory / self.spec.fanout.pow(above) % self.spec.fanout;
        let mut paths: Vec<String> = Vec::new();
        for above in (0..self.depth).rev() {
            let around = paths.last().map(|path| format!("{path}/")).unwrap_or_default();
            paths.push(format!("{around}d{:02}", digit(above)));
        }
        paths
    }

    /// Return the name of a file in its directory.
    pub(super) fn name(&self, index: u32) -> String {
        format!("f{index:08}.{}", TYPES[usize::from(self.files[index as usize].kind)].extension)
    }

    /// Return the modification time of a file in seconds since the Unix epoch, and the number of its owner, from 0.
    pub(super) fn time_and_owner(&self, index: u32) -> (i64, u32) {
        let mut stream = Stream::new(self.spec.seed, FOR_TIMES | u64::from(index));
        let (unit, owner) = (stream.unit(), stream.below(u64::from(self.spec.owners.max(1))));
        // The square makes young files more frequent.
        let age = unit * unit * self.spec.maximum_age_days as f64 * DAY;
        #[expect(clippy::cast_possible_truncation, reason = "ages are far below 2^63 seconds")]
        let modified = self.spec.now - age as i64;
        (modified, u32::try_from(owner).unwrap_or(0))
    }

    /// Return the offsets at which a pattern is inserted into a file: one per hit, or none if the file is not selected
    /// or too small.
    pub(super) fn places(&self, pattern: usize, file: &Planned) -> Vec<u64> {
        let Planted { text, share, hits } = &self.spec.patterns[pattern];
        let identity = u64::from(file.identity) << 8 | pattern as u64;
        let mut stream = Stream::new(self.spec.seed, FOR_PATTERNS | identity);
        let length = text.len() as u64 + 2;
        // Each pattern and hit has its own section of the file, so that none overwrites another.
        let patterns = self.spec.patterns.len() as u64;
        let stretch = file.size.saturating_sub(SMALLEST_FILE) / hits / patterns;
        if stream.unit() >= *share || stretch < length {
            return Vec::new();
        }
        let start = |hit| SMALLEST_FILE + (hit * patterns + pattern as u64) * stretch;
        (0..*hits).map(|hit| start(hit) + stream.below(stretch - length + 1)).collect()
    }
}

/// Return which files are copies of earlier files of their class. The number of copies is the requested share of all
/// files, at most all files but the first of each class, which is always an original.
fn copies(spec: &Spec, classes: &[u16]) -> Result<Vec<bool>> {
    let mut started = vec![false; spec.classes.len()];
    let mut first = memory::room_for::<bool>("the plan of all files", classes.len() as u64)?;
    first.extend(classes.iter().map(|&class| !std::mem::replace(&mut started[usize::from(class)], true)));
    let possible = first.iter().filter(|first| !**first).count();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
    let wanted = ((classes.len() as f64 * spec.duplicates).round() as usize).min(possible);
    let mut drawn: Vec<bool> = (0..possible).map(|number| number < wanted).collect();
    shuffle(&mut drawn, &mut Stream::new(spec.seed, FOR_COPIES));
    let mut drawn = drawn.into_iter();
    Ok(first.into_iter().map(|first| !first && drawn.next().unwrap_or(false)).collect())
}

fn original(spec: &Spec, class: u16, index: u32, stream: &mut Stream) -> Planned {
    let about = &spec.classes[usize::from(class)];
    let size = about.distribution.draw(about.mean_bytes, stream).max(SMALLEST_FILE);
    let mut drawn = stream.below(100);
    let kind = TYPES.iter().zip(0u16..).find(|(file_type, _)| {
        let found = drawn < file_type.hundredths;
        drawn = drawn.saturating_sub(file_type.hundredths);
        found
    });
    Planned { size, identity: index, class, kind: kind.map_or(0, |(_, index)| index) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_the_types_are_whole() {
        assert_eq!(TYPES.iter().map(|file_type| file_type.hundredths).sum::<u64>(), 100);
        for file_type in TYPES {
            let name = format!("a.{}", file_type.extension);
            assert_eq!(Kind::by_name(name.as_bytes()), file_type.kind, "{name}");
        }
    }

    #[test]
    fn the_share_of_copies_is_as_asked() {
        for (share, copies) in [(0.0, 0), (0.1, 150), (0.25, 376), (1.0, 1500)] {
            let spec = Spec { scale: 0.003, duplicates: share, ..Spec::default() };
            let plan = Plan::new(&spec).unwrap();
            // 1350, 150 and 3 files: the first of each class is an original.
            let found = plan.files.iter().zip(0u32..).filter(|(file, index)| file.identity != *index).count();
            assert_eq!((plan.files.len(), found), (1503, copies), "{share}");
        }
    }

    #[test]
    fn directories_are_counted() {
        let spec = Spec { scale: 0.003, files_per_directory: 10, fanout: 3, ..Spec::default() };
        let plan = Plan::new(&spec).unwrap();
        let paths: std::collections::BTreeSet<_> =
            (0..plan.directories()).flat_map(|directory| plan.directory_paths(directory)).collect();
        assert_eq!(plan.all_directories(), 1 + paths.len() as u64);
    }
}
