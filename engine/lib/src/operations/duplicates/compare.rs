//! The last step: the remaining candidates are compared byte by byte.
//!
//! Each file is compared with the first file of its group. Large groups are split into several comparisons and long
//! files into stretches, so that all threads have work. Files that differ from the first are grouped by full hashes and
//! then compared in the same way.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Hash;
use super::collect::{Files, LastDirectory};
use super::heads::{note, read_at};
use super::part::part;
use super::{PIECE, digest};
use crate::document::{Bandwidth, Operation};
use crate::error::Result;
use crate::measure::phase::{NOTHING, Phase};
use crate::measure::recorder::Recorder;
use crate::measure::share::Share;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::walk::{Tried, Troubles};

/// Maximum number of files that are compared with the first file in one task.
const SIDE_BY_SIDE: usize = 15;
/// Maximum length of a stretch in bytes.
const STRETCH: u64 = 32 << 20;

/// The sets of identical files, and the measured operations.
pub(super) struct Compared {
    pub(super) sets: Vec<Vec<u32>>,
    pub(super) operations: Vec<Operation>,
}

/// Compare the files of each group. Full hashes are computed only if several files of a group differ from its first
/// file.
pub(super) fn compare<'a>(
    phase: &impl Fn(&'static str, Bandwidth) -> Result<Phase<'a>>,
    files: &Files,
    alike: Vec<Vec<u32>>,
    hash: Hash,
    troubles: &mut Troubles,
) -> Result<Compared> {
    let mut round = Round::new(files, alike);
    let mut compared = Compared { sets: Vec::new(), operations: Vec::new() };
    compared.operations.push(round.run(&phase("compare", Bandwidth::Counted)?, troubles)?);
    let mut left = round.finish(&mut compared.sets);
    if !left.is_empty() {
        let (operation, parted) = part(&phase("hash", Bandwidth::Counted)?, files, &left, hash, troubles)?;
        compared.operations.push(operation);
        left = parted;
    }
    while !left.is_empty() {
        round = Round::new(files, left);
        compared.operations.push(round.run(&phase("compare", Bandwidth::Counted)?, troubles)?);
        left = round.finish(&mut compared.sets);
    }
    Ok(compared)
}

/// Result of the comparison of a file; `gone` if it cannot be read.
#[derive(Default)]
struct Fate {
    differs: AtomicBool,
    gone: AtomicBool,
}

/// A comparison of a stretch of the first file of a group with the same stretch of some of the others.
struct Task {
    first: u32,
    others: Vec<u32>,
    offset: u64,
    length: u64,
}

/// One comparison of all groups.
struct Round<'a> {
    files: &'a Files,
    groups: Vec<Vec<u32>>,
    fates: Vec<Fate>,
    tasks: Vec<Task>,
}

impl<'a> Round<'a> {
    fn new(files: &'a Files, groups: Vec<Vec<u32>>) -> Self {
        let mut tasks = Vec::new();
        for group in &groups {
            let size = files.list[group[0] as usize].size;
            for others in group[1..].chunks(SIDE_BY_SIDE) {
                let stretches = (0..size).step_by(usize::try_from(STRETCH).unwrap_or(usize::MAX));
                tasks.extend(stretches.map(|offset| Task {
                    first: group[0],
                    others: others.to_vec(),
                    offset,
                    length: STRETCH.min(size - offset),
                }));
            }
        }
        let fates = files.list.iter().map(|_| Fate::default()).collect();
        Self { files, groups, fates, tasks }
    }

    fn run(&self, phase: &Phase<'_>, troubles: &mut Troubles) -> Result<Operation> {
        let share = Share::new(self.tasks.len(), 1);
        let prepare = |_| Comparer::new(self);
        let work = |_, mut comparer: Comparer<'_>, recorder: &mut Recorder<'_>| {
            while let Some(range) = share.take() {
                recorder.begin();
                comparer.compare(&self.tasks[range.start], recorder)?;
            }
            Ok(comparer.troubles)
        };
        let (operation, parts) = phase.run(prepare, work, NOTHING)?;
        for part in parts {
            troubles.merge(part);
        }
        Ok(operation)
    }

    /// Add the sets of identical files to `sets`. Returns the groups that have to be compared again.
    fn finish(self, sets: &mut Vec<Vec<u32>>) -> Vec<Vec<u32>> {
        let mut left = Vec::new();
        for mut group in self.groups {
            let fate = |index: u32| &self.fates[index as usize];
            group.retain(|&index| !fate(index).gone.load(Ordering::Relaxed));
            let (different, same): (Vec<u32>, Vec<u32>) =
                group.into_iter().partition(|&index| fate(index).differs.load(Ordering::Relaxed));
            sets.extend((same.len() > 1).then_some(same));
            left.extend((different.len() > 1).then_some(different));
        }
        left
    }
}

struct Comparer<'a> {
    round: &'a Round<'a>,
    last: LastDirectory,
    first: Vec<u8>,
    other: Vec<u8>,
    troubles: Troubles,
}

impl<'a> Comparer<'a> {
    fn new(round: &'a Round<'a>) -> Result<Self> {
        let (first, other) = (memory::zeroed(PIECE)?, memory::zeroed(PIECE)?);
        Ok(Self { round, last: LastDirectory::default(), first, other, troubles: Troubles::default() })
    }

    fn compare(&mut self, task: &Task, recorder: &mut Recorder<'_>) -> Result<()> {
        recorder.check()?;
        let Some(first) = self.open(task.first, recorder)? else {
            return self.first_is_gone(task);
        };
        let mut others = Vec::with_capacity(task.others.len());
        for &index in &task.others {
            if !self.round.fates[index as usize].differs.load(Ordering::Relaxed) {
                others.extend(self.open(index, recorder)?.map(|file| (index, file)));
            }
        }
        let mut offset = task.offset;
        let end = task.offset + task.length;
        while offset < end && !others.is_empty() {
            recorder.check()?;
            let length = usize::try_from(end - offset).map_or(PIECE, |left| left.min(PIECE));
            if let Err(trouble) = read_at(&first, &mut self.first[..length], offset, recorder) {
                note(trouble, self.round.files, task.first, &mut self.troubles, recorder)?;
                self.round.fates[task.first as usize].gone.store(true, Ordering::Relaxed);
                return self.first_is_gone(task);
            }
            self.keep_the_same(&mut others, length, offset, recorder)?;
            offset += length as u64;
        }
        recorder.skip();
        for file in std::iter::once(first).chain(others.into_iter().map(|(_, file)| file)) {
            close(file, recorder);
        }
        recorder.end(0);
        Ok(())
    }

    fn open(&mut self, index: u32, recorder: &mut Recorder<'_>) -> Result<Option<OwnedFd>> {
        match self.round.files.open(&mut self.last, index).tried("open") {
            Ok(file) => {
                recorder.lap(Syscall::Open);
                Ok(Some(file))
            }
            Err(trouble) => {
                self.round.fates[index as usize].gone.store(true, Ordering::Relaxed);
                note(trouble, self.round.files, index, &mut self.troubles, recorder)?;
                Ok(None)
            }
        }
    }

    /// Mark the other files as different, because the first file cannot be read. The next round compares them with each
    /// other.
    #[expect(clippy::unnecessary_wraps, reason = "it ends a comparison")]
    fn first_is_gone(&self, task: &Task) -> Result<()> {
        for &index in &task.others {
            self.round.fates[index as usize].differs.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn keep_the_same(
        &mut self,
        others: &mut Vec<(u32, OwnedFd)>,
        length: usize,
        offset: u64,
        recorder: &mut Recorder<'_>,
    ) -> Result<()> {
        let mut position = 0;
        while position < others.len() {
            let (index, file) = &others[position];
            let fate = &self.round.fates[*index as usize];
            let read = read_at(file, &mut self.other[..length], offset, recorder);
            let same = read.is_ok() && digest::same(&self.first[..length], &self.other[..length]);
            recorder.skip();
            if same {
                position += 1;
                continue;
            }
            match read {
                Ok(()) => fate.differs.store(true, Ordering::Relaxed),
                Err(trouble) => {
                    fate.gone.store(true, Ordering::Relaxed);
                    note(trouble, self.round.files, *index, &mut self.troubles, recorder)?;
                }
            }
            close(others.swap_remove(position).1, recorder);
        }
        Ok(())
    }
}

/// Close a file and record the time as a separate system call.
fn close(file: OwnedFd, recorder: &mut Recorder<'_>) {
    drop(file);
    recorder.lap(Syscall::Close);
}

/// Run the first task of a comparison of one group, for tests.
#[cfg(test)]
pub(super) fn compare_one(files: &Files, group: Vec<u32>, recorder: &mut Recorder<'_>) {
    let round = Round::new(files, vec![group]);
    let mut comparer = Comparer::new(&round).expect("two small buffers");
    comparer.compare(&round.tasks[0], recorder).expect("all are there");
}
