//! The barrier at which the workers of a phase start together.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier that can also reject all workers. This is needed if not all threads could be started, or if the
/// preparation of one failed.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    /// Notifies the thread that opens the gate. It is separate from `opened`, so that an arrival does not wake the
    /// waiting workers.
    arrived: Condvar,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    waiting: usize,
    /// Number of workers that must arrive; `None` until all are started.
    awaited: Option<usize>,
    failed: bool,
    verdict: Option<bool>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait until the gate opens. `ready` tells whether this worker is ready. Returns whether the worker may proceed.
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

    /// Wait until all `started` workers have arrived, then decide: they may proceed if their number is `wanted` and all
    /// are ready. In this case `go` is called just before.
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
