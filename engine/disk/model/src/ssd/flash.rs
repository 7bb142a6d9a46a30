//! The dies and their channels: what occupies each, and until when. Reads have priority over waiting programs.

use std::collections::VecDeque;

use crate::Nanos;

/// Pages that are programmed together, and the time for it.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) pages: Vec<(u64, u64)>,
    pub(crate) ready: Nanos,
    pub(crate) time: Nanos,
}

#[derive(Debug, Clone, Default)]
struct Die {
    free: Nanos,
    running: Option<(Program, Nanos)>,
    waiting: VecDeque<Program>,
}

/// All dies.
#[derive(Debug, Clone)]
pub(crate) struct Flash {
    dies: Vec<Die>,
    channels: Vec<Nanos>,
}

impl Flash {
    pub(crate) fn new(dies: u32, channels: u32) -> Self {
        Self { dies: vec![Die::default(); dies as usize], channels: vec![0; channels as usize] }
    }

    /// Return the die with the fewest programs among those that satisfy `may`. Of equal dies, it is the first one after
    /// `after`.
    pub(crate) fn least(&self, after: u32, may: impl Fn(u32) -> bool) -> u32 {
        let count = u32::try_from(self.dies.len()).expect("bug: a drive has few dies");
        let busy = |number: &u32| {
            let die = &self.dies[*number as usize];
            die.waiting.len() + usize::from(die.running.is_some())
        };
        let numbers = (1..=count).map(|step| (after + step) % count).filter(|number| may(*number));
        numbers.min_by_key(busy).expect("bug: some die has room, for flash exceeds the disk")
    }

    /// Read a page. Returns the time at which its data has passed the channel. A running program is suspended after the
    /// time `suspend`.
    pub(crate) fn read(
        &mut self,
        die: u32,
        now: Nanos,
        sense: Nanos,
        transfer: Nanos,
        suspend: Nanos,
    ) -> Nanos {
        let channel = die as usize % self.channels.len();
        let die = &mut self.dies[die as usize];
        let start = match &mut die.running {
            Some((_, end)) if *end > now && now + suspend < *end => {
                let start = die.free.max(now + suspend);
                *end += sense; // the program resumes after the read
                start
            }
            Some((_, end)) => die.free.max(now).max(*end),
            None => die.free.max(now),
        };
        die.free = start + sense;
        let sent = self.channels[channel].max(die.free) + transfer;
        self.channels[channel] = sent;
        sent
    }

    pub(crate) fn program(&mut self, die: u32, program: Program) {
        self.dies[die as usize].waiting.push_back(program);
    }

    /// Start the programs that can start, and append those that ended by `now`.
    pub(crate) fn advance(&mut self, now: Nanos, ended: &mut Vec<(Nanos, Program)>) {
        for die in &mut self.dies {
            loop {
                if let Some((program, end)) = die.running.take_if(|(_, end)| *end <= now) {
                    die.free = die.free.max(end);
                    ended.push((end, program));
                }
                if die.running.is_some() {
                    break;
                }
                let Some(program) = die.waiting.front() else { break };
                let start = program.ready.max(die.free);
                if start > now {
                    break;
                }
                let end = start + program.time;
                die.running = die.waiting.pop_front().map(|program| (program, end));
            }
        }
        ended.sort_by_key(|(end, _)| *end);
    }

    /// Return the time of the next start or end of a program.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let one = |die: &Die| match &die.running {
            Some((_, end)) => Some(*end),
            None => die.waiting.front().map(|program| program.ready.max(die.free)),
        };
        self.dies.iter().filter_map(one).min()
    }
}
