//! Full hashes, to part files that differ from the first of their group.

use xxhash_rust::xxh3::Xxh3;

use super::Hash;
use super::collect::{Files, LastDirectory};
use super::compare::PIECE;
use super::heads::{note, read_at};
use crate::document::Operation;
use crate::error::Result;
use crate::measure::phase::{NOTHING, Phase};
use crate::measure::recorder::{Recorder, Syscall};
use crate::measure::share::Share;
use crate::walk::{Tried, Troubles, Visit};

/// Parts each group by the full hashes of its files.
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
    let work = |_, recorder: &mut Recorder<'_>| {
        let (mut last, mut buffer) = (LastDirectory::default(), vec![0; 4 * PIECE]);
        let (mut hashes, mut troubles) = (Vec::new(), Troubles::default());
        while let Some(range) = share.take() {
            recorder.check()?;
            recorder.begin();
            let (group, index) = list[range.start];
            match hash_file(files, index, hash, &mut last, &mut buffer, recorder) {
                Ok(hash) => hashes.push((group, hash, index)),
                Err(trouble) => note(trouble, files, index, &mut troubles, recorder)?,
            }
        }
        Ok((hashes, troubles))
    };
    let (operation, parts) = phase.run(work, NOTHING)?;
    let mut hashes = Vec::new();
    for (its_hashes, its_troubles) in parts {
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
    let (mut strong, mut fast) = (blake3::Hasher::new(), Xxh3::new());
    let mut offset = 0;
    while offset < size {
        recorder.check()?;
        let length = usize::try_from(size - offset).map_or(buffer.len(), |left| left.min(buffer.len()));
        read_at(&file, &mut buffer[..length], offset, recorder)?;
        match hash {
            Hash::Blake3 => _ = strong.update(&buffer[..length]),
            Hash::Xxh3 => fast.update(&buffer[..length]),
        }
        recorder.skip();
        offset += length as u64;
    }
    drop(file);
    recorder.lap(Syscall::Close);
    recorder.end(size);
    let mut result = [0; 32];
    match hash {
        Hash::Blake3 => result = *strong.finalize().as_bytes(),
        Hash::Xxh3 => result[..16].copy_from_slice(&fast.digest128().to_le_bytes()),
    }
    Ok(result)
}
