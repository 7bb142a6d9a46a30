//! Distribution of work to threads. Each thread has its own tasks, without a lock, and hands some of them to idle
//! threads. The walk ends when all threads are idle.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// State shared by all threads.
#[derive(Debug)]
pub(super) struct Pool<T> {
    threads: usize,
    /// Number of waiting threads minus the number of tasks in the pool, at least 0.
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

    /// Return whether a thread is idle and there is no task for it in the pool.
    #[inline]
    pub(super) fn is_hungry(&self) -> bool {
        self.hunger.load(Ordering::Relaxed) > 0
    }

    /// Add tasks for idle threads.
    pub(super) fn give(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tasks.extend(tasks);
        self.note_hunger(&state);
        if state.tasks.len() > 1 { self.changed.notify_all() } else { self.changed.notify_one() }
    }

    /// Wait for a task. Returns `None` when the walk is over.
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

    /// End the walk for all threads.
    pub(super) fn abort(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.changed.notify_all();
    }

    fn note_hunger(&self, state: &State<T>) {
        self.hunger.store(state.waiting.saturating_sub(state.tasks.len()), Ordering::Relaxed);
    }
}
