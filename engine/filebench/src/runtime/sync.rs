//! Synchronisation of threads: semaphores with a high-water mark (`semblock`, `sempost`), and `block` with `wakeup`.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval at which a waiting thread checks whether it must stop.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct State {
    /// Units that were posted and not yet taken.
    low: f64,
    /// Units that blocking posters may still post before they must wait.
    high: f64,
    woken: bool,
}

/// The semaphore or wake-up flag that one instance of a `block` or `semblock` waits for.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn new(highwater: f64) -> Self {
        Self { state: Mutex::new(State { high: highwater, ..State::default() }), changed: Condvar::new() }
    }

    /// Wait until `ready` returns true for the state, then change the state. Return false, without a change, if `stop`
    /// returns true first.
    fn when(
        &self,
        ready: impl Fn(&State) -> bool,
        change: impl FnOnce(&mut State),
        stop: impl Fn() -> bool,
    ) -> bool {
        let mut state: MutexGuard<'_, State> = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !ready(&state) {
            if stop() {
                return false;
            }
            (state, _) = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
        change(&mut state);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Allow posters to post `value` more units. Then wait until `value` units are available, and take them. Return
    /// false if `stop` returns true first.
    pub(crate) fn take(&self, value: f64, stop: impl Fn() -> bool) -> bool {
        self.when(|_| true, |state| state.high += value, || false);
        self.when(|state| state.low >= value, |state| state.low -= value, stop)
    }

    /// Post `value` units. With `blocking`, first wait until the high-water mark permits it. Return false if `stop`
    /// returns true first.
    pub(crate) fn post(&self, value: f64, blocking: bool, stop: impl Fn() -> bool) -> bool {
        self.when(
            |state| !blocking || state.high >= value,
            |state| {
                state.low += value;
                state.high -= if blocking { value } else { 0.0 };
            },
            stop,
        )
    }

    /// Wait for a wake-up. One wake-up that came before this call is remembered. Return false if `stop` returns true
    /// first.
    pub(crate) fn block(&self, stop: impl Fn() -> bool) -> bool {
        self.when(|state| state.woken, |state| state.woken = false, stop)
    }

    pub(crate) fn wake(&self) {
        self.when(|_| true, |state| state.woken = true, || false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posters_wait_at_the_high_water_mark() {
        let gate = Gate::new(2.0);
        let (never, at_once) = (|| false, || true);
        assert!(gate.post(1.0, true, never) && gate.post(1.0, true, never));
        assert!(!gate.post(1.0, true, at_once), "two are the most");
        assert!(gate.post(1.0, false, never), "who does not block is not counted");
        assert!(gate.take(3.0, never));
        assert!(!gate.take(1.0, at_once), "all is taken");
        // Taking 3 and trying to take 1 allows posters to post 4 more.
        assert!((0..4).all(|_| gate.post(1.0, true, never)));
        assert!(!gate.post(1.0, true, at_once));
    }

    #[test]
    fn a_wake_up_is_remembered_once() {
        let gate = Gate::default();
        gate.wake();
        gate.wake();
        assert!(gate.block(|| false));
        assert!(!gate.block(|| true));
    }
}
