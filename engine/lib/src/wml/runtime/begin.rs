//! How the threads of a model begin together: the last one that is ready wakes the one who starts them, who
//! wakes all.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often whoever waits looks whether the run is over: the end wakes nobody here.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct State {
    ready: usize,
    wanted: usize,
    gone: bool,
}

/// Where they meet.
#[derive(Debug, Default)]
pub(super) struct Begin {
    state: Mutex<State>,
    all: Condvar,
    go: Condvar,
}

impl Begin {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many threads are ready; false if `ended` says so before.
    pub(super) fn wait_for_all(&self, wanted: usize, ended: impl Fn() -> bool) -> bool {
        let mut state = self.lock();
        state.wanted = wanted;
        while state.ready < wanted {
            if ended() {
                return false;
            }
            (state, _) = self.all.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Lets all threads begin.
    pub(super) fn go(&self) {
        self.lock().gone = true;
        self.go.notify_all();
    }

    /// One more is ready, and waits until all are; false if the run is over before.
    pub(super) fn wait_for_go(&self, over: impl Fn() -> bool) -> bool {
        let mut state = self.lock();
        state.ready += 1;
        if state.ready == state.wanted {
            self.all.notify_one();
        }
        while !state.gone {
            if over() {
                return false;
            }
            (state, _) = self.go.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn nobody_begins_before_all_are_ready() {
        let (begin, begun) = (Begin::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    assert!(begin.wait_for_go(|| false));
                    begun.fetch_add(1, Ordering::SeqCst);
                });
            }
            assert!(begin.wait_for_all(8, || false));
            assert_eq!(begun.load(Ordering::SeqCst), 0);
            begin.go();
        });
        assert_eq!(begun.into_inner(), 8);
    }

    #[test]
    fn a_run_that_is_over_keeps_nobody() {
        let begin = Begin::default();
        assert!(!begin.wait_for_go(|| true));
        assert!(!begin.wait_for_all(2, || true));
    }
}
