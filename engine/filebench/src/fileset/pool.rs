//! The state of a fileset's files: which exist, which are in use, and which is picked next.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::bits::NumberSet;

/// Interval at which a waiting thread checks whether it must stop.
const LOOK: Duration = Duration::from_millis(20);

/// Which files may be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Files that exist.
    Existing,
    /// Files that do not exist.
    Missing,
}

/// The state of a picked file when it is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The same as before.
    Unchanged,
    /// It exists now.
    Exists,
    /// It exists now, and the thread that created it has it open.
    Opened,
    /// It no longer exists.
    Gone,
}

/// The result of a search for a file that no thread has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The number of the file, which is now taken.
    This(usize),
    /// All files that exist are open.
    AllOpen,
    /// No file exists.
    None,
}

/// The state of a file at the time when it was taken. While it is taken, no other thread can open or delete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) exists: bool,
    /// Number of open descriptors of the file.
    pub(crate) opened: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    exists: bool,
    busy: bool,
    opened: u32,
}

#[derive(Debug)]
struct State {
    entries: Vec<Entry>,
    existing: NumberSet,
    missing: NumberSet,
    /// Where the next search for an existing file starts. Element 0 is shared by all threads; each thread that uses
    /// `opennext` has an element of its own.
    next_existing: Vec<usize>,
    /// Where the next search for a missing file starts.
    next_missing: usize,
    /// Number of files that are taken.
    busy: usize,
    /// Number of threads that wait for a change.
    waiting: usize,
}

/// The files or the leaf directories of a fileset.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    length: usize,
}

impl Pool {
    /// Create a pool of `length` files. `exists` tells which of them exist.
    pub(crate) fn new(length: usize, exists: impl Fn(usize) -> bool) -> Self {
        let mut state = State {
            entries: vec![Entry::default(); length],
            existing: NumberSet::new(length),
            missing: NumberSet::new(length),
            next_existing: vec![0],
            next_missing: 0,
            busy: 0,
            waiting: 0,
        };
        for number in 0..length {
            state.entries[number].exists = exists(number);
            let set = if state.entries[number].exists { &mut state.existing } else { &mut state.missing };
            set.insert(number);
        }
        Self { state: Mutex::new(state), changed: Condvar::new(), length }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait until the state changes, at most [`LOOK`].
    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let (mut state, _) = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Take a file: the next in turn, or the first from `index` on (after the last file, the search continues at the
    /// first). If there is none but some files are taken, wait until one is given back. Return `None` if there is no
    /// such file, or if `stop` returns true while waiting. `turn` is the element of [`State::next_existing`] to use.
    pub(crate) fn pick(
        &self,
        wanted: Wanted,
        index: Option<usize>,
        turn: usize,
        stop: impl Fn() -> bool,
    ) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if let Some(number) = state.next(wanted, index, turn) {
                state.take(number);
                return Some(number);
            }
            if state.busy == 0 || stop() {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Choose an existing file as [`Pool::pick`] does and count it as open. The file is not taken: several threads can
    /// open it at the same time. No other thread deletes it while it is open.
    pub(crate) fn open(&self, index: Option<usize>, turn: usize, stop: impl Fn() -> bool) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if let Some(number) = state.next(Wanted::Existing, index, turn) {
                state.entries[number].opened += 1;
                return Some(number);
            }
            if state.busy == 0 || stop() {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Take an existing file that no thread has open: the next in turn, or the first from `index` on. Wait as
    /// [`Pool::pick`] does if only taken files exist, but do not wait if all other files are open.
    pub(crate) fn pick_closed(&self, index: Option<usize>, stop: impl Fn() -> bool) -> Closed {
        let mut state = self.lock();
        loop {
            match state.closed_from(index.unwrap_or(state.next_existing[0])) {
                Closed::This(number) => {
                    if index.is_none() {
                        state.next_existing[0] = number + 1;
                    }
                    state.take(number);
                    return Closed::This(number);
                }
                Closed::None if state.busy > 0 && !stop() => state = self.wait(state),
                other => return other,
            }
        }
    }

    /// Take this file. Wait while another thread has taken it. Return `None` if `stop` returns true while waiting.
    pub(crate) fn take(&self, number: usize, stop: impl Fn() -> bool) -> Option<Taken> {
        let mut state = self.lock();
        while state.entries[number].busy {
            if stop() {
                return None;
            }
            state = self.wait(state);
        }
        let Entry { exists, opened, .. } = state.entries[number];
        state.take(number);
        Some(Taken { exists, opened })
    }

    /// Give back a file that was taken, and wake threads that wait for one.
    pub(crate) fn give_back(&self, number: usize, fate: Fate) {
        let mut state = self.lock();
        let entry = &mut state.entries[number];
        entry.busy = false;
        match fate {
            Fate::Unchanged => {}
            Fate::Exists => entry.exists = true,
            Fate::Opened => (entry.exists, entry.opened) = (true, 1),
            Fate::Gone => (entry.exists, entry.opened) = (false, 0),
        }
        if state.entries[number].exists {
            state.existing.insert(number);
        } else {
            state.missing.insert(number);
        }
        state.busy -= 1;
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Count one open descriptor of this file less.
    pub(crate) fn close(&self, number: usize) {
        let entry = &mut self.lock().entries[number];
        entry.opened = entry.opened.saturating_sub(1);
    }
}

impl State {
    fn next(&mut self, wanted: Wanted, index: Option<usize>, turn: usize) -> Option<usize> {
        if turn >= self.next_existing.len() {
            self.next_existing.resize(turn + 1, 0);
        }
        let (set, next) = match wanted {
            Wanted::Existing => (&self.existing, &mut self.next_existing[turn]),
            Wanted::Missing => (&self.missing, &mut self.next_missing),
        };
        if let Some(index) = index {
            return set.next_from(index);
        }
        let found = set.next_from(*next)?;
        *next = found + 1;
        Some(found)
    }

    fn closed_from(&self, start: usize) -> Closed {
        let Some(first) = self.existing.next_from(start) else { return Closed::None };
        let mut number = first;
        while self.entries[number].opened > 0 {
            match self.existing.next_from(number + 1) {
                Some(next) if next != first => number = next,
                _ => return Closed::AllOpen,
            }
        }
        Closed::This(number)
    }

    fn take(&mut self, number: usize) {
        self.existing.remove(number);
        self.missing.remove(number);
        self.entries[number].busy = true;
        self.busy += 1;
    }
}

#[cfg(test)]
mod tests;
