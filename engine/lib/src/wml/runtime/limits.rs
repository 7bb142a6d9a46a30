//! Events, and the flowops that wait for them: so many happen each second, and whoever has done more
//! than there were events waits. Up to five seconds of events are kept for later.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::measure::clock::now_ns;

/// How many seconds of events are kept.
const KEPT: f64 = 5.0;
/// How often a thread that waits looks whether it shall stop.
const LOOK_NS: u64 = 20_000_000;

#[derive(Debug, Default)]
struct State {
    rate: f64,
    available: f64,
    since: u64,
}

/// The events that happen by themselves.
#[derive(Debug, Default)]
pub(crate) struct Events {
    state: Mutex<State>,
}

impl Events {
    /// From now on so many each second; 0 switches the limits off.
    pub(crate) fn set_rate(&self, rate: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.accrue(now_ns());
        state.rate = rate;
    }

    /// Starts with none.
    pub(crate) fn reset(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.available, state.since) = (0.0, now_ns());
    }

    /// Takes so many events, and waits until they have happened, or `stop` says so.
    pub(crate) fn take(&self, events: f64, stop: impl Fn() -> bool) {
        let wait_ns = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.rate <= 0.0 {
                return;
            }
            state.accrue(now_ns());
            state.available -= events;
            (-state.available / state.rate * 1e9).max(0.0)
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
        pause(wait_ns as u64, stop);
    }
}

/// Waits so long, or until `stop` says so.
pub(crate) fn pause(nanoseconds: u64, stop: impl Fn() -> bool) {
    let end = now_ns().saturating_add(nanoseconds);
    loop {
        let now = now_ns();
        if now >= end || stop() {
            return;
        }
        std::thread::sleep(Duration::from_nanos((end - now).min(LOOK_NS)));
    }
}

impl State {
    fn accrue(&mut self, now: u64) {
        let happened = now.saturating_sub(self.since) as f64 / 1e9 * self.rate;
        self.available = (self.available + happened).min(KEPT * self.rate);
        self.since = now;
    }
}

/// What all threads have done, for limits that are about all of them; kept only where a flowop asks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Operations on files.
    pub(crate) operations: AtomicU64,
    /// Those that read or write.
    pub(crate) transfers: AtomicU64,
    /// What they moved.
    pub(crate) bytes: AtomicU64,
    settled: [Mutex<u64>; 3],
}

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    Operations,
    Transfers,
    Bytes,
}

impl Totals {
    pub(crate) fn of(&self, what: Measured) -> u64 {
        match what {
            Measured::Operations => &self.operations,
            Measured::Transfers => &self.transfers,
            Measured::Bytes => &self.bytes,
        }
        .load(Ordering::Relaxed)
    }

    /// What was done since any thread last asked.
    pub(crate) fn since_last(&self, what: Measured) -> u64 {
        let mut settled = self.settled[what as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let total = self.of(what);
        let new = total.saturating_sub(*settled);
        *settled = total;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_five_seconds_of_events_can_be_taken_at_once() {
        let mut state = State { rate: 2.0, available: 0.0, since: 0 };
        state.accrue(100_000_000_000);
        assert!((state.available - 10.0).abs() < 1e-9);
        state.available -= 50.0;
        state.accrue(110_000_000_000);
        assert!((state.available + 20.0).abs() < 1e-9);
    }

    #[test]
    fn what_was_done_is_charged_once() {
        let totals = Totals::default();
        totals.operations.store(7, Ordering::Relaxed);
        let asked = [totals.since_last(Measured::Operations), totals.since_last(Measured::Operations)];
        assert_eq!(asked, [7, 0]);
    }
}
