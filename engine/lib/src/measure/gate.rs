//! The barrier at which the workers of a phase start together.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier that can also turn everyone away, which is needed when not all threads could be started or one
/// could not make what it needs.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    /// Heard by the one who opens, so that an arrival wakes none of those who wait.
    arrived: Condvar,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    waiting: usize,
    /// How many have to arrive; `None` until all are started.
    awaited: Option<usize>,
    failed: bool,
    verdict: Option<bool>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the verdict: whether to go on.
    pub(super) fn pass(&self, ready: bool) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        state.failed |= !ready;
        if state.awaited == Some(state.waiting) {
            self.arrived.notify_one();
        }
        loop {
            if let Some(verdict) = state.verdict {
                return verdict;
            }
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Once all `started` threads wait, lets them through if they are as many as `wanted` and all ready;
    /// calls `go` just before.
    pub(super) fn open(&self, started: usize, wanted: usize, go: impl FnOnce()) {
        let mut state = self.lock();
        state.awaited = Some(started);
        let mut state = self
            .arrived
            .wait_while(state, |state| state.waiting < started)
            .unwrap_or_else(PoisonError::into_inner);
        let verdict = started == wanted && !state.failed;
        if verdict {
            go();
        }
        state.verdict = Some(verdict);
        self.opened.notify_all();
    }
}
