//! Full hashes, which divide the files that differ from the first file of their group.

use super::Hash;
use super::PIECE;
use super::collect::{Files, LastDirectory};
use super::digest::Digest;
use super::heads::{HASHES, note, read_at};
use crate::document::Operation;
use crate::error::Result;
use crate::measure::phase::{NOTHING, Phase};
use crate::measure::recorder::Recorder;
use crate::measure::share::Share;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::walk::{Tried, Troubles, Visit};

/// Divide each group by the full hashes of its files. A file whose hash is unique in its group is dropped.
pub(super) fn part(
    phase: &Phase<'_>,
    files: &Files,
    groups: &[Vec<u32>],
    hash: Hash,
    troubles: &mut Troubles,
) -> Result<(Operation, Vec<Vec<u32>>)> {
    let list: Vec<(usize, u32)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, members)| members.iter().map(move |&m| (group, m)))
        .collect();
    let share = Share::new(list.len(), 1);
    let prepare = |_| memory::zeroed(4 * PIECE);
    let work = |_, mut buffer: Vec<u8>, recorder: &mut Recorder<'_>| {
        let mut last = LastDirectory::default();
        let (mut hashes, mut troubles) = (Vec::new(), Troubles::default());
        while let Some(range) = share.take() {
            recorder.check()?;
            recorder.begin();
            let (group, index) = list[range.start];
            match hash_file(files, index, hash, &mut last, &mut buffer, recorder) {
                Ok(hash) => {
                    memory::grow(HASHES, &mut hashes, 1)?;
                    hashes.push((group, hash, index));
                }
                Err(trouble) => note(trouble, files, index, &mut troubles, recorder)?,
            }
        }
        Ok((hashes, troubles))
    };
    let (operation, parts) = phase.run(prepare, work, NOTHING)?;
    let mut hashes = Vec::new();
    for (its_hashes, its_troubles) in parts {
        memory::grow(HASHES, &mut hashes, its_hashes.len())?;
        hashes.extend(its_hashes);
        troubles.merge(its_troubles);
    }
    hashes.sort_unstable();
    let parted = hashes.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|group| group.len() > 1);
    Ok((operation, parted.map(|group| group.iter().map(|entry| entry.2).collect()).collect()))
}

fn hash_file(
    files: &Files,
    index: u32,
    hash: Hash,
    last: &mut LastDirectory,
    buffer: &mut [u8],
    recorder: &mut Recorder<'_>,
) -> Visit<[u8; 32]> {
    let file = files.open(last, index).tried("open")?;
    recorder.lap(Syscall::Open);
    let size = files.list[index as usize].size;
    let (mut digest, mut offset) = (Digest::new(hash), 0);
    while offset < size {
        recorder.check()?;
        let length = usize::try_from(size - offset).map_or(buffer.len(), |left| left.min(buffer.len()));
        read_at(&file, &mut buffer[..length], offset, recorder)?;
        digest.update(&buffer[..length]);
        recorder.skip();
        offset += length as u64;
    }
    let digest = digest.finish();
    recorder.skip();
    drop(file);
    recorder.lap(Syscall::Close);
    recorder.end(0);
    Ok(digest)
}

/// Hash one file, for tests.
#[cfg(test)]
pub(super) fn hash_one(files: &Files, index: u32, hash: Hash, recorder: &mut Recorder<'_>) {
    let (mut last, mut buffer) = (LastDirectory::default(), vec![0; PIECE]);
    hash_file(files, index, hash, &mut last, &mut buffer, recorder).unwrap_or_else(|_| panic!("it is there"));
}
