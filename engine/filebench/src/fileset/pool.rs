//! Which files of a fileset exist, which are in use, and which comes next.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::bits::NumberSet;

/// How often a thread that waits looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(20);

/// Which files are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those that exist.
    Existing,
    /// Those that do not.
    Missing,
}

/// What became of a picked file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is as it was.
    Unchanged,
    /// It exists now.
    Exists,
    /// It exists now, and whoever made it has it open.
    Opened,
    /// It does not exist any more.
    Gone,
}

/// What a search for a file that nobody has open found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// This one.
    This(usize),
    /// All that exist are open.
    AllOpen,
    /// None exists.
    None,
}

/// What is known of a file that was taken: nobody else can delete it, and who opens it has to take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) exists: bool,
    /// How many have it open.
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
    /// Where the search goes on: for files that exist (one for each thread that wants its own), for
    /// those that do not.
    next_existing: Vec<usize>,
    next_missing: usize,
    busy: usize,
    waiting: usize,
}

/// The files or the empty directories of a fileset.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    length: usize,
}

impl Pool {
    /// So many, of which those exist that `exists` says.
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

    /// Waits for a change, or a moment.
    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let (mut state, _) = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Takes one: the next in turn, or the first from `index` on. While all that would do are in use for
    /// a moment, it waits. `None` if there is none, or `stop` says so.
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

    /// Opens one that exists, as [`Pool::pick`] finds it; it is not taken: several may open it at once, and as
    /// long as it is open no thread deletes it.
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

    /// Takes one that exists and that nobody has open: the next in turn, or the first from `index` on.
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

    /// Takes this very one once nobody else uses it; `None` if `stop` says so.
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

    /// Gives one back.
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

    /// One less has it open.
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
