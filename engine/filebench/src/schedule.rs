//! Schedule of a run: when its periods and the run itself end.

use super::program::Timing;

/// The next event of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Due {
    /// The end of the run.
    End,
    /// The end of a period.
    Period,
    /// No event for this time in seconds.
    In(f64),
}

/// The schedule of a run. All times are in seconds since its start.
#[derive(Debug)]
pub(crate) struct Schedule {
    end: f64,
    period: f64,
    next: f64,
}

impl Schedule {
    pub(crate) fn new(timing: Timing) -> Self {
        let period = timing.period.unwrap_or(f64::INFINITY);
        Self { end: timing.seconds.unwrap_or(f64::INFINITY), period, next: period }
    }

    /// Return the event that is due at `passed`. Missed periods are returned one per call, unless the run is over.
    pub(crate) fn at(&mut self, passed: f64) -> Due {
        if !self.has_time(passed) {
            return Due::End;
        }
        if passed >= self.next {
            self.next += self.period;
            return Due::Period;
        }
        Due::In(self.end.min(self.next) - passed)
    }

    /// Return whether the run continues at `passed`.
    pub(crate) fn has_time(&self, passed: f64) -> bool {
        passed < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_and_the_end_come_in_turn_however_late_they_are_asked_for() {
        let mut schedule = Schedule::new(Timing { seconds: Some(2.5), period: Some(1.0), fresh: true });
        let (asked, expected) = (
            [0.0, 0.75, 1.0, 1.0, 2.25, 2.25, 2.5, 9.0],
            [
                Due::In(1.0),
                Due::In(0.25),
                Due::Period,
                Due::In(1.0),
                Due::Period,
                Due::In(0.25),
                Due::End,
                Due::End,
            ],
        );
        assert_eq!(asked.map(|passed| schedule.at(passed)), expected);
        let mut late = Schedule::new(Timing { seconds: None, period: Some(1.0), fresh: false });
        assert_eq!([2.5; 3].map(|passed| late.at(passed)), [Due::Period, Due::Period, Due::In(0.5)]);
        let mut endless = Schedule::new(Timing { seconds: None, period: None, fresh: false });
        assert_eq!(endless.at(1e9), Due::In(f64::INFINITY));
    }
}
