//! What decides about a request before the drive sees it: power, an armed power cut, faults.

use fslab_disk_model::drive::{Op, Request};
use fslab_disk_model::fault::{Fate, Faults};
use fslab_disk_model::volatile::Unflushed;
use serde::Deserialize;

/// A power cut that was asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cut {
    /// What becomes of data that no flush covers.
    #[serde(default = "random")]
    pub(crate) unflushed: Unflushed,
    /// Decide by sector instead of by page.
    #[serde(default)]
    pub(crate) torn: bool,
    /// Of the random choices.
    #[serde(default)]
    pub(crate) seed: u64,
    /// When; now if nothing is said.
    #[serde(default)]
    pub(crate) after: After,
}

/// The first of these that comes.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// That many writes have been let through; the next one meets the cut.
    pub(crate) writes: Option<u64>,
    /// That many requests of any kind.
    pub(crate) requests: Option<u64>,
    /// So much time of the drive, nanoseconds.
    pub(crate) nanoseconds: Option<u64>,
}

impl After {
    pub(crate) fn now(self) -> bool {
        self.writes.is_none() && self.requests.is_none() && self.nanoseconds.is_none()
    }
}

fn random() -> Unflushed {
    Unflushed::Random
}

/// Why a request goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There is no power.
    Off,
    /// The armed cut comes before this request.
    CutNow,
}

/// Power, cut and faults.
pub(crate) struct Gate {
    pub(crate) powered: bool,
    pub(crate) cut: Option<Cut>,
    pub(crate) faults: Faults,
    /// When the armed cut comes, drive time.
    pub(crate) cut_at: Option<u64>,
}

impl Gate {
    pub(crate) fn new(seed: u64) -> Self {
        Self { powered: true, cut: None, faults: Faults::new(seed), cut_at: None }
    }

    /// Whether requests may skip it.
    pub(crate) fn idle(&self) -> bool {
        self.powered && self.cut.is_none() && !self.faults.armed()
    }

    /// Lets a request pass, or not.
    pub(crate) fn pass(&mut self, now: u64, request: &Request) -> Result<Fate, Stop> {
        if !self.powered {
            return Err(Stop::Off);
        }
        if self.cut_at.is_some_and(|at| at <= now) || self.counts_down(request) {
            return Err(Stop::CutNow);
        }
        Ok(self.faults.decide(request))
    }

    fn counts_down(&mut self, request: &Request) -> bool {
        let Some(cut) = &mut self.cut else { return false };
        let mut reached = false;
        let mut step = |counter: &mut Option<u64>, counts: bool| {
            if let Some(left) = counter.as_mut().filter(|_| counts) {
                reached |= *left == 0;
                *left = left.saturating_sub(1);
            }
        };
        step(&mut cut.after.writes, request.op == Op::Write);
        step(&mut cut.after.requests, true);
        reached
    }
}
