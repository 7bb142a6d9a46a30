//! The cleaning of a band: it is read, merged with what the persistent cache has of it, and written again.

use std::collections::VecDeque;

use crate::Nanos;
use crate::drive::{Cache, Op};
use crate::hdd::shingled::{Owner, Shingled};

/// Sectors that are read or written at once.
const STEP: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    op: Op,
    sector: u64,
    end: u64,
}

/// A band, or the end of one, that is written again.
#[derive(Debug)]
pub(super) struct Cleaning {
    steps: VecDeque<Step>,
    /// The step under way, and whether the disk has answered it.
    step: Option<(Step, bool)>,
    /// What was cached when it began: first sector, end, place.
    merged: Vec<(u64, u64, u64)>,
}

fn steps(op: Op, sector: u64, end: u64) -> impl Iterator<Item = Step> {
    let starts = (sector..end).step_by(usize::try_from(STEP).unwrap_or(usize::MAX));
    starts.map(move |start| Step { op, sector: start, end: (start + STEP).min(end) })
}

impl Shingled {
    /// Return the time at which the drive begins to clean if no request comes; `None` if there is nothing to clean.
    pub(super) fn idle(&self) -> Option<Nanos> {
        let open = self.stream.is_some_and(|end| end % self.band != 0);
        let wanted = open || !self.torn.is_empty() || self.media.sectors() > 0;
        let free = self.cleaning.is_none() && self.parts.is_empty() && self.waiting.is_empty();
        (wanted && free).then_some((self.last_request + self.idle).max(self.now))
    }

    /// Begin to clean if it is time, and go on with it.
    pub(super) fn clean(&mut self) {
        loop {
            let crowded = self.media.is_nearly_full() || !self.waiting.is_empty();
            let idle = self.idle().is_some_and(|at| at <= self.now);
            if idle {
                self.end_stream();
            }
            if self.cleaning.is_none() && (crowded || idle) {
                self.cleaning = self.next_cleaning();
            }
            let Some(cleaning) = &mut self.cleaning else { return };
            if let Some((step, answered)) = cleaning.step {
                // One step at a time is in the volatile cache: a flush of the host waits for it.
                let cached = self.cache == Cache::Volatile && self.disk.has_dirty(step.sector, step.end);
                if !answered || (step.op == Op::Write && cached) {
                    return;
                }
            }
            cleaning.step = cleaning.steps.pop_front().map(|step| (step, false));
            match cleaning.step {
                Some((step, _)) => self.ask(Owner::Cleaning, step.op, step.sector, step.end - step.sector),
                None => self.end_cleaning(),
            }
        }
    }

    /// Note that the disk has answered the step under way.
    pub(super) fn answered(&mut self) {
        if let Some((_, answered)) = self.cleaning.as_mut().and_then(|cleaning| cleaning.step.as_mut()) {
            *answered = true;
        }
    }

    fn next_cleaning(&mut self) -> Option<Cleaning> {
        let (start, end) = match self.media.oldest() {
            Some(oldest) if self.torn.is_empty() || self.media.is_nearly_full() => {
                let start = oldest / self.band * self.band;
                (start, (start + self.band).min(self.sectors))
            }
            _ => self.torn.pop_front()?,
        };
        let merged = self.media.places(start, end);
        let mut reads: Vec<Step> = Vec::new();
        if merged.iter().map(|(from, to, _)| to - from).sum::<u64>() < end - start {
            reads.extend(steps(Op::Read, start, end));
        }
        let mut cached: Vec<(u64, u64)> =
            merged.iter().map(|(from, to, place)| (*place, place + to - from)).collect();
        cached.sort_unstable();
        for (from, to) in cached {
            match reads.last_mut().filter(|last| last.end == from && to - last.sector <= STEP) {
                Some(last) => last.end = to,
                None => reads.extend(steps(Op::Read, from, to)),
            }
        }
        let steps = reads.into_iter().chain(steps(Op::Write, start, end)).collect();
        Some(Cleaning { steps, step: None, merged })
    }

    fn end_cleaning(&mut self) {
        let Some(cleaning) = self.cleaning.take() else { return };
        for (sector, end, place) in cleaning.merged {
            self.media.forget_at(sector, end, place);
        }
        self.bands_cleaned += 1;
        self.admit();
    }
}
