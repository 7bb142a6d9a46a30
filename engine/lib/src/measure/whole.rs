//! A sequence of phases, and the work between them, reported as one operation.

use super::clock::{now_ns, seconds};
use super::cpu::CpuTime;
use crate::document::Operation;

/// A running sequence of phases.
#[derive(Debug)]
pub struct Whole {
    started: u64,
    cpu: CpuTime,
}

impl Whole {
    /// Start the time measurement, before the first phase.
    pub fn begin() -> Self {
        Self { started: now_ns(), cpu: CpuTime::of_this_process() }
    }

    /// Return one operation for the sequence: the count of the first phase, the bytes and errors of all phases, and the
    /// time and the CPU time of the process since [`Whole::begin`], including those between phases.
    pub fn end(self, name: &'static str, parts: &[Operation]) -> Operation {
        let cpu = CpuTime::of_this_process() - self.cpu;
        let passed = seconds(now_ns() - self.started);
        let waited =
            parts.last().map_or(0.0, |last| last.last_finished_seconds - last.first_finished_seconds);
        let count = parts.first().map_or(0, |part| part.count);
        let bytes: u64 = parts.iter().filter_map(|part| part.bytes).sum();
        Operation {
            name,
            count,
            bytes: Some(bytes),
            errors: parts.iter().map(|part| part.errors).sum(),
            began_seconds: seconds(self.started),
            seconds: passed,
            sync_seconds: None,
            first_finished_seconds: passed - waited,
            last_finished_seconds: passed,
            rate_per_second: (passed > 0.0).then(|| count as f64 / passed),
            bandwidth_bytes_per_second: (passed > 0.0).then(|| bytes as f64 / passed),
            cpu_user_seconds: seconds(cpu.user_ns),
            cpu_system_seconds: seconds(cpu.system_ns),
            latency_ns: None,
            syscalls: None,
            series: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Bandwidth;
    use crate::measure::clock::fake;
    use crate::measure::phase::{NOTHING, Phase, unprepared};
    use crate::measure::{Detail, Measure};

    #[test]
    fn what_lies_between_phases_is_in_the_whole() {
        fake::start();
        let measure = Measure { latency: Detail::Off, interval_ns: None };
        let phase = Phase::new("part", 1, &measure, Bandwidth::Counted).unwrap();
        let part = || {
            phase
                .run(
                    unprepared,
                    |_, (), recorder| {
                        recorder.end(10);
                        Ok(())
                    },
                    NOTHING,
                )
                .unwrap()
                .0
        };
        let whole = Whole::begin();
        let mut parts = vec![part()];
        fake::spend(3_000_000_000);
        parts.push(part());
        fake::spend(1_000_000_000);
        let all = whole.end("all", &parts);
        // Four seconds, plus the time that sorting empty lists takes on the fake clock.
        assert!((4.0..4.1).contains(&all.seconds), "{}", all.seconds);
        assert_eq!((all.count, all.bytes), (1, Some(20)));
    }
}
