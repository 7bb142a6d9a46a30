//! Rules that inject faults: which requests they affect, and how. Faults use a separate random stream, so that the same
//! requests get the same faults.

use std::borrow::Cow;

use fslab_engine::random::Stream;
use serde::{Deserialize, Serialize};

use crate::drive::{Op, Request};
use crate::{Nanos, SECTOR, index};

/// Effect of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The request fails with an I/O error and changes nothing.
    Error,
    /// Reads fail until the sectors are written again.
    Latent,
    /// One bit flips permanently: in the data being stored (write), or in the stored data (read).
    BitRot,
    /// Only the first sectors of a write are stored. The write reports success.
    Shorn,
    /// The request takes `delay_ns` longer.
    Stuck,
    /// A flush reports success at once and makes nothing durable.
    IgnoreFlush,
}

/// An armed fault.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Effect of the fault.
    pub effect: Effect,
    /// For `stuck`: additional time, in drive time.
    #[serde(default)]
    pub delay_ns: Nanos,
    /// Operation that is affected; `None`: every operation for which the effect is defined.
    #[serde(default)]
    pub op: Option<Op>,
    /// First byte of the range.
    #[serde(default)]
    pub start: u64,
    /// The byte after the range; `None`: the end of the disk.
    #[serde(default)]
    pub end: Option<u64>,
    /// Probability that a request in the range is affected.
    #[serde(default = "one")]
    pub probability: f64,
    /// Number of strikes after which the fault ends; `None`: no limit.
    #[serde(default)]
    pub times: Option<u64>,
    /// Number of requests affected so far.
    #[serde(default, skip_deserializing)]
    pub struck: u64,
}

fn one() -> f64 {
    1.0
}

/// How faults affect one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// The request fails.
    pub error: bool,
    /// Additional time, in drive time.
    pub delay: Nanos,
    /// Number of its sectors that are stored; `None`: all.
    pub stored: Option<u64>,
    /// Number of the bit of its data that flips.
    pub flip: Option<u64>,
    /// The request succeeds without effect.
    pub ignored: bool,
}

impl Fate {
    /// Return what the disk stores of the data of a write to this byte: its first sectors, with the bit that flips.
    pub fn stores<'a>(&self, offset: u64, data: &'a [u8]) -> Cow<'a, [u8]> {
        let length = self.stored.map_or(data.len(), |sectors| data.len().min(index(sectors * SECTOR)));
        let mut stored = Cow::Borrowed(&data[..length]);
        if let Some(bit) = self.flip {
            let at = (bit / 8).checked_sub(offset % SECTOR);
            if let Some(byte) = at.and_then(|at| stored.to_mut().get_mut(index(at))) {
                *byte ^= 1 << (bit % 8);
            }
        }
        stored
    }
}

/// The armed faults.
#[derive(Debug)]
pub struct Faults {
    rules: Vec<(u64, Rule)>,
    latent: Vec<(u64, u64)>,
    next: u64,
    random: Stream,
}

impl Faults {
    /// Create a set without armed faults.
    pub fn new(seed: u64) -> Self {
        Self { rules: Vec::new(), latent: Vec::new(), next: 1, random: Stream::new(seed, 0x0fau64) }
    }

    /// Arm a fault and return its number.
    pub fn arm(&mut self, rule: Rule) -> u64 {
        let number = self.next;
        self.next += 1;
        if rule.effect == Effect::Latent {
            self.latent.push((rule.start / SECTOR, rule.end.map_or(u64::MAX, |end| end.div_ceil(SECTOR))));
        }
        self.rules.push((number, rule));
        number
    }

    /// Disarm one fault, or all.
    pub fn disarm(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.rules.retain(|(one, _)| *one != number),
            None => self.rules.clear(),
        }
        if self.rules.iter().all(|(_, rule)| rule.effect != Effect::Latent) {
            self.latent.clear();
        }
    }

    /// Return whether any fault is armed.
    pub fn armed(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Return the armed faults with their numbers.
    pub fn rules(&self) -> &[(u64, Rule)] {
        &self.rules
    }

    /// Decide how a request is affected.
    pub fn decide(&mut self, request: &Request) -> Fate {
        let mut fate = Fate::default();
        for (_, rule) in &mut self.rules {
            if !rule.meets(request) || rule.times.is_some_and(|times| rule.struck >= times) {
                continue;
            }
            if rule.effect == Effect::Latent {
                if self.latent.iter().any(|(start, end)| *start < request.end() && request.sector < *end) {
                    rule.struck += 1;
                    fate.error = true;
                }
                continue;
            }
            if rule.probability < 1.0 && self.random.unit() >= rule.probability {
                continue;
            }
            rule.struck += 1;
            match rule.effect {
                Effect::Error => fate.error = true,
                Effect::Latent => {}
                Effect::BitRot => fate.flip = Some(self.random.below(request.sectors * SECTOR * 8)),
                Effect::Shorn => fate.stored = Some(self.random.below(request.sectors)),
                Effect::Stuck => fate.delay += rule.delay_ns,
                Effect::IgnoreFlush => fate.ignored = true,
            }
        }
        if request.op == Op::Write && !fate.error {
            self.heal(request.sector, request.end());
        }
        fate
    }

    /// Clear the latent errors of written sectors: the drive remaps these sectors.
    fn heal(&mut self, sector: u64, end: u64) {
        let mut rest = Vec::with_capacity(self.latent.len());
        for (from, to) in self.latent.drain(..) {
            if end <= from || to <= sector {
                rest.push((from, to));
                continue;
            }
            rest.extend([(from, sector.max(from)), (end.min(to), to)].into_iter().filter(|(a, b)| a < b));
        }
        self.latent = rest;
    }
}

impl Rule {
    fn meets(&self, request: &Request) -> bool {
        let op = match self.effect {
            Effect::Latent => request.op == Op::Read,
            Effect::Shorn => request.op == Op::Write && request.sectors > 0,
            Effect::IgnoreFlush => request.op == Op::Flush,
            Effect::BitRot => matches!(request.op, Op::Read | Op::Write) && request.sectors > 0,
            Effect::Error | Effect::Stuck => true,
        };
        let (start, end) = (self.start / SECTOR, self.end.map_or(u64::MAX, |end| end.div_ceil(SECTOR)));
        let place = request.op == Op::Flush || (start < request.end() && request.sector < end);
        op && place && self.op.is_none_or(|op| op == request.op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(json: &str) -> Rule {
        serde_json::from_str(json).expect("a rule")
    }

    fn request(op: Op, sector: u64, sectors: u64) -> Request {
        Request { id: 1, op, sector, sectors }
    }

    #[test]
    fn an_error_meets_its_range_and_operation_only() {
        let mut faults = Faults::new(1);
        faults.arm(rule(r#"{"effect": "error", "op": "write", "start": 4096, "end": 8192}"#));
        assert!(faults.decide(&request(Op::Write, 15, 2)).error);
        assert!(!faults.decide(&request(Op::Write, 16, 8)).error);
        assert!(!faults.decide(&request(Op::Read, 8, 8)).error);
    }

    #[test]
    fn what_a_fault_leaves_of_a_write_is_stored() {
        let data = [3; 1536];
        assert_eq!(*Fate::default().stores(512, &data), data);
        assert_eq!(*Fate { stored: Some(2), ..Fate::default() }.stores(512, &data), data[..1024]);
        let mut flipped = data;
        flipped[600] = 3 ^ 4;
        assert_eq!(*Fate { flip: Some(600 * 8 + 2), ..Fate::default() }.stores(512, &data), flipped);
    }

    #[test]
    fn a_latent_error_ends_where_it_is_written() {
        let mut faults = Faults::new(1);
        faults.arm(rule(r#"{"effect": "latent", "start": 0, "end": 8192}"#));
        assert!(faults.decide(&request(Op::Read, 0, 1)).error);
        assert!(!faults.decide(&request(Op::Write, 0, 8)).error);
        assert!(!faults.decide(&request(Op::Read, 0, 8)).error);
        assert!(faults.decide(&request(Op::Read, 8, 8)).error);
    }

    #[test]
    fn probability_is_kept_and_repeats() {
        let count = || {
            let mut faults = Faults::new(7);
            faults.arm(rule(r#"{"effect": "stuck", "delay_ns": 2000000000, "probability": 0.1}"#));
            (0..10_000).filter(|_| faults.decide(&request(Op::Read, 0, 8)).delay > 0).count()
        };
        assert_eq!(count(), count());
        assert!((900..1100).contains(&count()), "{}", count());
    }
}
