//! The second step: hashes of the head and the tail of each file, or of the whole file if it is small.

use std::os::fd::AsFd;

use super::collect::{Files, LastDirectory};
use super::digest;
use crate::document::Operation;
use crate::error::Result;
use crate::measure::phase::{NOTHING, Phase};
use crate::measure::recorder::Recorder;
use crate::measure::share::Share;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::walk::{Tried, Trouble, Troubles, Visit};
use rustix::io::Errno;

/// Bytes read at each end of a file.
const END: usize = 4 << 10;
/// Maximum size in bytes of a file that is read completely and compared by its BLAKE3 hash.
pub(super) const SMALL: u64 = 16 << 10;
/// Size of the buffer in bytes: enough for a small file, or for both ends of a larger one.
const BUFFER: usize = 16 << 10;
/// Purpose of the memory, for error messages.
pub(super) const HASHES: &str = "the hashes of all files";
/// Number of files that a thread takes from the list at a time.
const AT_ONCE: usize = 32;

/// The groups that remain after the second step.
pub(super) struct Heads {
    /// Groups of small files with identical contents.
    pub(super) settled: Vec<Vec<u32>>,
    /// Groups of larger files with the same size, head and tail.
    pub(super) alike: Vec<Vec<u32>>,
    pub(super) troubles: Troubles,
}

/// Hash the head and the tail of each file, and group the files by size and hash.
pub(super) fn hash_heads(phase: &Phase<'_>, files: &Files) -> Result<(Operation, Heads)> {
    let share = Share::new(files.list.len(), AT_ONCE);
    let prepare =
        |_| Ok(HeadHasher { files, last: LastDirectory::default(), buffer: memory::zeroed(BUFFER)? });
    let work = |_, mut hasher: HeadHasher<'_>, recorder: &mut Recorder<'_>| {
        let (mut hashes, mut troubles) = (Vec::new(), Troubles::default());
        while let Some(range) = share.take() {
            recorder.begin();
            for index in range {
                recorder.check()?;
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                match hasher.hash(index, recorder) {
                    Ok(hash) => {
                        memory::grow(HASHES, &mut hashes, 1)?;
                        hashes.push((files.list[index as usize].size, hash, index));
                    }
                    Err(trouble) => note(trouble, files, index, &mut troubles, recorder)?,
                }
            }
        }
        Ok((hashes, troubles))
    };
    let (operation, parts) = phase.run(prepare, work, NOTHING)?;
    let (mut hashes, mut troubles) = (Vec::new(), Troubles::default());
    for (its_hashes, its_troubles) in parts {
        memory::grow(HASHES, &mut hashes, its_hashes.len())?;
        hashes.extend(its_hashes);
        troubles.merge(its_troubles);
    }
    hashes.sort_unstable();
    let groups = hashes.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|group| group.len() > 1);
    let (small, large): (Vec<_>, Vec<_>) = groups.partition(|group| group[0].0 <= SMALL);
    let members = |groups: Vec<&[(u64, u128, u32)]>| {
        groups.into_iter().map(|group| group.iter().map(|entry| entry.2).collect()).collect()
    };
    Ok((operation, Heads { settled: members(small), alike: members(large), troubles }))
}

/// Count a file that could not be read. Returns the error if it is fatal.
pub(super) fn note(
    trouble: Trouble,
    files: &Files,
    index: u32,
    troubles: &mut Troubles,
    recorder: &mut Recorder<'_>,
) -> Result<()> {
    match trouble {
        Trouble::Fatal(error) => Err(error),
        Trouble::File(action, errno) => {
            recorder.failed();
            troubles.add(action, &files.path(index), errno);
            Ok(())
        }
    }
}

struct HeadHasher<'a> {
    files: &'a Files,
    last: LastDirectory,
    buffer: Vec<u8>,
}

impl HeadHasher<'_> {
    fn hash(&mut self, index: u32, recorder: &mut Recorder<'_>) -> Visit<u128> {
        let size = self.files.list[index as usize].size;
        let file = self.files.open(&mut self.last, index).tried("open")?;
        recorder.lap(Syscall::Open);
        let hash = match usize::try_from(size) {
            Ok(length) if size <= SMALL => {
                let whole = &mut self.buffer[..length];
                read_at(&file, whole, 0, recorder)?;
                let hash = digest::whole(whole);
                hash.as_bytes().first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
            }
            _ => {
                let both = &mut self.buffer[..2 * END];
                let (head, tail) = both.split_at_mut(END);
                read_at(&file, head, 0, recorder)?;
                read_at(&file, tail, size - END as u64, recorder)?;
                digest::ends(both)
            }
        };
        recorder.skip();
        drop(file);
        recorder.lap(Syscall::Close);
        recorder.end(0);
        Ok(hash)
    }
}

/// Fill the buffer with `pread` from `offset` on, and count the bytes. Fails with `ENODATA` if the file has become
/// shorter.
pub(super) fn read_at(
    file: impl AsFd,
    mut buffer: &mut [u8],
    mut offset: u64,
    recorder: &mut Recorder<'_>,
) -> Visit {
    while !buffer.is_empty() {
        let count = match rustix::io::pread(&file, &mut *buffer, offset) {
            Err(Errno::INTR) => continue,
            Ok(0) => return Err(Trouble::File("read all of", Errno::NODATA)),
            other => other.tried("read")?,
        };
        recorder.moved(count);
        buffer = &mut buffer[count..];
        offset += count as u64;
    }
    recorder.lap(Syscall::Read);
    Ok(())
}

/// Hash one file, for tests.
#[cfg(test)]
pub(super) fn hash_one(files: &Files, index: u32, recorder: &mut Recorder<'_>) {
    let (last, buffer) = (LastDirectory::default(), vec![0; BUFFER]);
    HeadHasher { files, last, buffer }.hash(index, recorder).unwrap_or_else(|_| panic!("it is there"));
}
