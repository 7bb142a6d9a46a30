//! Events, and the flowops that wait for them: so many happen each second, and whoever has done more
//! than there were events waits. Up to five seconds of events are kept for later, so that threads that were held
//! up catch up; how late each then is goes into latencies from the scheduled time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fslab_engine::measure::clock::now_ns;

/// How many seconds of events are kept.
const KEPT: f64 = 5.0;
/// How often a thread that waits looks whether it shall stop.
const LOOK_NS: u64 = 20_000_000;

#[derive(Debug, Default)]
struct State {
    rate: f64,
    available: f64,
    since: u64,
    /// Events that happened while more than five seconds of them were kept already.
    lost: f64,
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
        (state.available, state.since, state.lost) = (0.0, now_ns(), 0.0);
    }

    /// How many events nobody could take within five seconds.
    pub(crate) fn lost(&self) -> f64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).lost
    }

    /// Takes so many events, and waits until they have happened, or `stop` says so. Returns by how many
    /// nanoseconds the thread is then behind the last of them; `None` if nothing limits it.
    pub(crate) fn take(&self, events: f64, stop: impl Fn() -> bool) -> Option<u64> {
        self.take_by(now_ns, |nanoseconds| pause(nanoseconds, stop), events)
    }

    /// The same by any clock.
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
        let most = KEPT * self.rate;
        let available = self.available + happened;
        self.lost += (available - most).max(0.0);
        self.available = available.min(most);
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

    /// A thousand events a second, and a stall of ten milliseconds: ten are late, the first by nine, and the
    /// next one is on time.
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
