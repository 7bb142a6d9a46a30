//! Checks of a request before the drive gets it: power, an armed power cut, faults.

use fslab_disk_model::drive::{Op, Request};
use fslab_disk_model::fault::{Fate, Faults};
use fslab_disk_model::volatile::Unflushed;
use serde::Deserialize;

/// A requested power cut.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cut {
    /// What happens to data that no flush covers.
    #[serde(default = "random")]
    pub(crate) unflushed: Unflushed,
    /// Decide for each sector instead of each page.
    #[serde(default)]
    pub(crate) torn: bool,
    /// Seed of the random decisions.
    #[serde(default)]
    pub(crate) seed: u64,
    /// Limits that delay the cut. Without any, power is cut at once.
    #[serde(default)]
    pub(crate) after: After,
}

/// Limits. The first one that is reached triggers the cut.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// Number of writes that pass. The next write triggers the cut.
    pub(crate) writes: Option<u64>,
    /// Number of requests of any kind that pass. The next request triggers the cut.
    pub(crate) requests: Option<u64>,
    /// Drive time until the cut, in nanoseconds.
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

/// Why a request does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Power is off.
    Off,
    /// The armed cut happens before this request.
    CutNow,
}

/// The state of power, cut and faults.
pub(crate) struct Gate {
    pub(crate) powered: bool,
    pub(crate) cut: Option<Cut>,
    pub(crate) faults: Faults,
    /// When the armed cut happens, in drive time.
    pub(crate) cut_at: Option<u64>,
}

impl Gate {
    pub(crate) fn new(seed: u64) -> Self {
        Self { powered: true, cut: None, faults: Faults::new(seed), cut_at: None }
    }

    /// Return whether requests may bypass the gate.
    pub(crate) fn idle(&self) -> bool {
        self.powered && self.cut.is_none() && !self.faults.armed()
    }

    /// Decide whether a request passes, and how faults affect it.
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
