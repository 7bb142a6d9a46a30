//! Prediction of a drive's performance under a steady load, in drive time: a fixed number of requests is always in
//! flight, as fio(1) keeps them.

use fslab_engine::random::Stream;

use crate::drive::{Drive, Event, Op, Request};
use crate::{Nanos, SECTOR};

/// A constant load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Operation of each request.
    pub op: Op,
    /// Bytes of a request.
    pub block: u64,
    /// Requests in flight.
    pub depth: u64,
    /// Whether positions are random instead of sequential.
    pub random: bool,
    /// First byte of the range.
    pub start: u64,
    /// The byte after the range.
    pub end: u64,
    /// Duration in drive time. The first quarter is not counted, because caches fill during it.
    pub time: Nanos,
    /// Time from a completion to the host's next request.
    pub think: Nanos,
    /// Seed of the random positions.
    pub seed: u64,
}

/// The result of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Requests per second.
    pub rate: f64,
    /// Response times of the requests, sorted.
    pub times: Vec<Nanos>,
}

/// Run the load on an idle drive.
pub fn predict(drive: &mut dyn Drive, load: &Load) -> Prediction {
    let places = ((load.end - load.start) / load.block).max(1);
    let mut random = Stream::new(load.seed, 7);
    let (mut id, mut started) = (0_u64, std::collections::HashMap::new());
    let mut submit =
        |drive: &mut dyn Drive, started: &mut std::collections::HashMap<u64, Nanos>, now: Nanos| {
            let place = if load.random { random.below(places) } else { id % places };
            id += 1;
            started.insert(id, now);
            let sector = (load.start + place * load.block) / SECTOR;
            drive.submit(now, &Request { id, op: load.op, sector, sectors: load.block / SECTOR });
        };
    let mut waiting = std::collections::VecDeque::from(vec![0; usize::try_from(load.depth).unwrap_or(1)]);
    let (mut events, mut times) = (Vec::new(), Vec::new());
    let counted = load.time / 4;
    loop {
        let asked = waiting.front().copied();
        let due = drive.next_event();
        let Some(now) = asked.into_iter().chain(due).min().filter(|now| *now <= load.time) else { break };
        if asked == Some(now) {
            waiting.pop_front();
            submit(drive, &mut started, now);
            continue;
        }
        drive.advance(now, &mut events);
        for event in events.drain(..) {
            let Event::Done { id, at } = event else { continue };
            let Some(start) = started.remove(&id) else { continue };
            if at >= counted {
                times.push(at - start);
            }
            waiting.push_back(at + load.think);
        }
    }
    times.sort_unstable();
    let rate = times.len() as f64 / ((load.time - counted) as f64 / 1e9);
    Prediction { rate, times }
}

impl Prediction {
    /// Return the time that this percentage of the requests did not exceed; `None` if none completed.
    pub fn quantile(&self, percent: usize) -> Option<Nanos> {
        self.times.get(self.times.len().checked_sub(1)? * percent / 100).copied()
    }
}
