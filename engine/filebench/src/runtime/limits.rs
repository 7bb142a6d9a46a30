//! Rate limits. Events occur at a fixed rate; limit flowops take events, and a thread waits if it takes more events
//! than have occurred. Up to five seconds of events are kept, so that threads that were delayed can catch up. The delay
//! of a thread behind its events is part of the latencies from the scheduled time (`scheduled_latency_ns`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fslab_engine::measure::clock::now_ns;

/// Maximum number of events that are kept, in seconds of the rate.
const KEPT: f64 = 5.0;
/// Interval at which a waiting thread checks whether it must stop, in nanoseconds.
const LOOK_NS: u64 = 20_000_000;

#[derive(Debug, Default)]
struct State {
    /// Events per second; no limit if 0.
    rate: f64,
    /// Events that have occurred and were not taken; negative if threads wait for events.
    available: f64,
    /// Time up to which events were added, by `now_ns`.
    since: u64,
    /// Events that were discarded because five seconds of events were already kept.
    lost: f64,
}

/// The events that all threads share.
#[derive(Debug, Default)]
pub(crate) struct Events {
    state: Mutex<State>,
}

impl Events {
    /// Set the number of events per second; 0 disables the limits. Kept events beyond five seconds of the new rate are
    /// dropped, but they are not lost: no thread was too slow for them.
    pub(crate) fn set_rate(&self, rate: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.accrue(now_ns());
        state.rate = rate;
        state.available = if rate > 0.0 { state.available.min(KEPT * rate) } else { 0.0 };
    }

    /// Discard all events and start to count them now.
    pub(crate) fn reset(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.available, state.since, state.lost) = (0.0, now_ns(), 0.0);
    }

    /// Return the number of events that no thread took within five seconds and that were therefore discarded.
    pub(crate) fn lost(&self) -> f64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).lost
    }

    /// Take this many events. Wait until they have occurred or `stop` returns true. Return the delay of the thread
    /// behind the last of them in nanoseconds, or `None` if there is no limit.
    pub(crate) fn take(&self, events: f64, stop: impl Fn() -> bool) -> Option<u64> {
        self.take_by(now_ns, |nanoseconds| pause(nanoseconds, stop), events)
    }

    /// Take events as [`Self::take`] does, with the given clock and pause.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    fn take_by(&self, clock: impl Fn() -> u64, pause: impl FnOnce(u64), events: f64) -> Option<u64> {
        let (now, ahead_ns) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.rate <= 0.0 {
                return None;
            }
            let now = clock();
            state.accrue(now);
            state.available -= events;
            (now, -state.available / state.rate * 1e9)
        };
        if ahead_ns <= 0.0 {
            return Some(-ahead_ns as u64);
        }
        let due = now.saturating_add(ahead_ns as u64);
        pause(ahead_ns as u64);
        Some(clock().saturating_sub(due))
    }
}

/// Sleep for this time, or until `stop` returns true. `stop` is checked every 20 ms.
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
    /// Add the events that have occurred until `now`, and discard what exceeds five seconds of events.
    fn accrue(&mut self, now: u64) {
        let happened = now.saturating_sub(self.since) as f64 / 1e9 * self.rate;
        let most = KEPT * self.rate;
        let available = self.available + happened;
        self.lost += (available - most).max(0.0);
        self.available = available.min(most);
        self.since = now;
    }
}

/// The work of all threads, for flowops without a target. It is counted only if the model has such a flowop.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Number of operations on files.
    pub(crate) operations: AtomicU64,
    /// Number of operations that read or write contents.
    pub(crate) transfers: AtomicU64,
    /// Bytes read and written.
    pub(crate) bytes: AtomicU64,
    /// Totals at the last call of [`Self::since_last`], by [`Measured`].
    settled: [Mutex<u64>; 3],
}

/// The kind of work that a flowop limits or ends the run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    Operations,
    Transfers,
    Bytes,
}

impl Totals {
    /// Return the total since the threads started.
    pub(crate) fn of(&self, what: Measured) -> u64 {
        match what {
            Measured::Operations => &self.operations,
            Measured::Transfers => &self.transfers,
            Measured::Bytes => &self.bytes,
        }
        .load(Ordering::Relaxed)
    }

    /// Return the work since any thread last called this, so that all work is charged once.
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
    use std::cell::Cell;

    use super::*;

    #[test]
    fn more_than_five_seconds_of_events_can_be_taken_at_once() {
        let mut state = State { rate: 2.0, ..State::default() };
        state.accrue(100_000_000_000);
        assert!((state.available - 10.0).abs() < 1e-9);
        assert!((state.lost - 190.0).abs() < 1e-9);
        state.available -= 50.0;
        state.accrue(110_000_000_000);
        assert!((state.available + 20.0).abs() < 1e-9);
    }

    #[test]
    fn a_lower_rate_loses_no_events_and_none_forgets_what_threads_owe() {
        let events = Events::default();
        events.reset();
        events.set_rate(1000.0);
        events.state.lock().unwrap().available = 4000.0;
        events.set_rate(10.0);
        let state = events.state.lock().unwrap();
        assert!(state.available <= 50.0 && state.lost <= 0.0, "{state:?}");
        drop(state);
        events.state.lock().unwrap().available = -30.0;
        events.set_rate(0.0);
        assert!(events.state.lock().unwrap().available.abs() < 1e-9);
    }

    /// 1000 events per second and a stall of 10 ms: the first event is taken 9 ms late, each of the following ones 1 ms
    /// less. The tenth and the eleventh are on time.
    #[test]
    fn a_stall_makes_all_that_it_held_up_late() {
        assert_eq!(Events::default().take(1.0, || false), None);
        let state = State { rate: 1000.0, since: 1_000_000_000, ..State::default() };
        let (events, time) = (Events { state: Mutex::new(state) }, Cell::new(1_010_000_000));
        let pause = |nanoseconds| time.set(time.get() + nanoseconds);
        let late: Vec<u64> = (0..11).filter_map(|_| events.take_by(|| time.get(), pause, 1.0)).collect();
        let rounded: Vec<u64> = late.iter().map(|ns| (ns + 500) / 1_000_000).collect();
        assert_eq!(rounded, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]);
        assert_eq!(time.get(), 1_000_000_000 + 11_000_000);
    }

    #[test]
    fn what_was_done_is_charged_once() {
        let totals = Totals::default();
        totals.operations.store(7, Ordering::Relaxed);
        let asked = [totals.since_last(Measured::Operations), totals.since_last(Measured::Operations)];
        assert_eq!(asked, [7, 0]);
    }
}
