//! Drive time. It runs `rate` times as fast as the machine's monotonic clock.

use std::time::Instant;

use fslab_disk_model::Nanos;

/// A clock with a rate that can change while it runs, and that can be halted.
#[derive(Debug)]
pub(crate) struct Clock {
    /// When drive time was `drive`; none while the clock is halted.
    real: Option<Instant>,
    drive: Nanos,
    speed: f64,
    slow: f64,
}

impl Clock {
    /// Start a clock at 0.
    pub(crate) fn new(speed: f64) -> Self {
        Self { real: Some(Instant::now()), drive: 0, speed, slow: 1.0 }
    }

    /// Return drive time per real time.
    pub(crate) fn rate(&self) -> f64 {
        self.speed / self.slow
    }

    /// Return the current drive time.
    pub(crate) fn now(&self) -> Nanos {
        let real = self.real.map_or(0, |real| u64::try_from(real.elapsed().as_nanos()).unwrap_or(u64::MAX));
        self.drive + self.scaled(real)
    }

    /// Return whether drive time stands still.
    pub(crate) fn is_halted(&self) -> bool {
        self.real.is_none()
    }

    /// Stop drive time, or let it go on.
    pub(crate) fn halt(&mut self, halted: bool) {
        self.drive = self.now();
        self.real = (!halted).then(Instant::now);
    }

    /// Convert real nanoseconds to drive time.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // both are positive and below 2^53
    pub(crate) fn scaled(&self, real: u64) -> Nanos {
        (real as f64 * self.rate()) as Nanos
    }

    /// Convert drive time to real nanoseconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // both are positive and below 2^53
    pub(crate) fn real(&self, drive: Nanos) -> u64 {
        (drive as f64 / self.rate()) as u64
    }

    /// Skip to a later drive time.
    pub(crate) fn skip_to(&mut self, time: Nanos) {
        self.drive = self.now().max(time);
        self.real = self.real.map(|_| Instant::now());
    }

    /// From now on, make the drive take `slow` times as long.
    pub(crate) fn set_slow(&mut self, slow: f64) {
        self.drive = self.now();
        self.real = self.real.map(|_| Instant::now());
        self.slow = slow;
    }
}
