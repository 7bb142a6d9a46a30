//! Flowops that access no file: limits, delays, CPU load, synchronisation, messages, and the end of the run.

use std::sync::PoisonError;

use crate::program::{Flowop, Kind};
use fslab_engine::measure::clock::now_ns;

use super::limits::{Measured, pause};
use super::worker::{Next, Worker};

const MEBIBYTE: f64 = 1_048_576.0;
/// Maximum number of messages of `print` that are kept; later ones are discarded.
const MOST_MESSAGES: usize = 1000;

impl Worker<'_> {
    /// Execute a flowop that accesses no file.
    pub(super) fn wait_or_finish(&mut self, flowop: &Flowop) -> Next {
        match flowop.kind {
            Kind::EventLimit => self.event_limit(flowop),
            Kind::IopsLimit => self.limit(flowop, Measured::Transfers, 1.0),
            Kind::OpsLimit => self.limit(flowop, Measured::Operations, 1.0),
            Kind::BandwidthLimit => self.limit(flowop, Measured::Bytes, MEBIBYTE),
            Kind::FinishOnCount => return self.finish_on(flowop, Measured::Operations),
            Kind::FinishOnBytes => return self.finish_on(flowop, Measured::Bytes),
            Kind::Hog => self.hog(flowop),
            Kind::Delay => self.delay(flowop),
            Kind::Block | Kind::SemBlock => self.block(flowop),
            Kind::Wakeup | Kind::SemPost => self.post(flowop),
            Kind::Print => self.print(flowop),
            Kind::TestRandomVariable => {
                let value = self.sampler.draw(&flowop.with.value);
                self.shared.statistics.drew(flowop.info, value);
            }
            _ => {}
        }
        Next::On
    }

    fn event_limit(&mut self, flowop: &Flowop) {
        let start = now_ns();
        self.late = self.shared.events.take(1.0, || self.shared.over());
        self.record(flowop, start, 0);
    }

    /// Take one event for each `each` units of new work, and wait for them. New work is what the target, or all threads
    /// if there is no target, have done since the last call.
    fn limit(&mut self, flowop: &Flowop, what: Measured, each: f64) {
        let start = now_ns();
        let new = match flowop.with.targets.first().map(|target| target.local) {
            None => self.shared.totals.since_last(what),
            Some(target) => {
                let Some(done) = self.done.get(target) else { return };
                let total = if what == Measured::Bytes { done.bytes } else { done.count };
                let own = &mut self.done[flowop.local];
                let new = total.saturating_sub(own.settled);
                own.settled = total;
                new
            }
        };
        if new > 0 {
            self.late = self.shared.events.take(new as f64 / each, || self.shared.over());
        } else {
            self.late = None; // the next operation was not scheduled
        }
        self.record(flowop, start, 0);
    }

    fn finish_on(&mut self, flowop: &Flowop, what: Measured) -> Next {
        let start = now_ns();
        let total = match flowop.with.targets.first().and_then(|target| self.done.get(target.local)) {
            None => self.shared.totals.of(what),
            Some(done) if what == Measured::Bytes => done.bytes,
            Some(done) => done.count,
        };
        let over = total as f64 >= self.constants[flowop.local].value;
        self.record(flowop, start, 0);
        if over { Next::Done } else { Next::On }
    }

    fn hog(&mut self, flowop: &Flowop) {
        let times = self.sampler.whole(&flowop.with.value);
        let start = now_ns();
        let mut cell = 0_u8;
        for round in 0..times {
            // A store that the compiler must not remove. It stands for the CPU work of an application.
            std::hint::black_box(&mut cell);
            cell = 1;
            if round % (1 << 20) == 0 && self.shared.over() {
                break;
            }
        }
        std::hint::black_box(cell);
        self.record(flowop, start, 0);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    fn delay(&mut self, flowop: &Flowop) {
        let seconds = self.sampler.draw(&flowop.with.value);
        let start = now_ns();
        pause((seconds * 1e9) as u64, || self.shared.over());
        self.record(flowop, start, 0);
    }

    fn block(&mut self, flowop: &Flowop) {
        let value = self.sampler.draw(&flowop.with.value);
        let shared = self.shared;
        let gate = shared.gates.get(&(self.place.0, flowop.local)).and_then(|gates| gates.get(self.place.1));
        let Some(gate) = gate else { return };
        let start = now_ns();
        let stop = || shared.over();
        let passed = if flowop.kind == Kind::Block { gate.block(stop) } else { gate.take(value, stop) };
        if passed {
            self.record(flowop, start, 0);
        }
    }

    fn post(&mut self, flowop: &Flowop) {
        let value = self.sampler.draw(&flowop.with.value);
        let shared = self.shared;
        let start = now_ns();
        for target in &flowop.with.targets {
            for gate in shared.gates.get(&(target.thread, target.local)).into_iter().flatten() {
                if flowop.kind == Kind::Wakeup {
                    gate.wake();
                } else if !gate.post(value, flowop.with.blocking, || shared.over()) {
                    return;
                }
            }
        }
        self.record(flowop, start, 0);
    }

    fn print(&mut self, flowop: &Flowop) {
        let start = now_ns();
        let text = flowop.with.text.clone().unwrap_or_default();
        let mut messages = self.shared.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() < MOST_MESSAGES {
            messages.push(format!("{} {}: {text}", self.spec.name, self.place.1 + 1));
        }
        drop(messages);
        self.record(flowop, start, 0);
    }
}
