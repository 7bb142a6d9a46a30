//! Work shared between threads: each has its own tasks, without a lock, and gives some away when
//! another thread is hungry. When all are hungry, the walk is over.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// What the threads share.
#[derive(Debug)]
pub(super) struct Pool<T> {
    threads: usize,
    /// Threads that wait, less the tasks that wait for them.
    hunger: AtomicUsize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    tasks: VecDeque<T>,
    waiting: usize,
    over: bool,
}

impl<T> Pool<T> {
    pub(super) fn new(threads: usize, first: T) -> Self {
        let state = State { tasks: VecDeque::from([first]), waiting: 0, over: false };
        Self { threads, hunger: AtomicUsize::new(0), state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whether some thread has nothing to do and nothing waits for it.
    #[inline]
    pub(super) fn is_hungry(&self) -> bool {
        self.hunger.load(Ordering::Relaxed) > 0
    }

    /// Gives tasks to whoever is hungry.
    pub(super) fn give(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tasks.extend(tasks);
        self.note_hunger(&state);
        if state.tasks.len() > 1 { self.changed.notify_all() } else { self.changed.notify_one() }
    }

    /// Waits for a task; `None` when the walk is over.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        loop {
            if state.over {
                return None;
            }
            if let Some(task) = state.tasks.pop_front() {
                state.waiting -= 1;
                self.note_hunger(&state);
                return Some(task);
            }
            if state.waiting == self.threads {
                state.over = true;
                self.changed.notify_all();
                return None;
            }
            self.note_hunger(&state);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the walk for everyone.
    pub(super) fn abort(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.changed.notify_all();
    }

    fn note_hunger(&self, state: &State<T>) {
        self.hunger.store(state.waiting.saturating_sub(state.tasks.len()), Ordering::Relaxed);
    }
}
