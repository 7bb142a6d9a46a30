//! Processing of requests, from arrival to reply, and power cuts. Only one thread at a time may use it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

use fslab_disk_model::drive::{Drive, Event, Op, Request};
use fslab_disk_model::fault::Fate;
use fslab_disk_model::log::{FAILED, FAULT, IGNORED, NO_DATA, Record};
use fslab_disk_model::store::is_zero;
use fslab_disk_model::volatile::Volatile;
use fslab_disk_model::{Nanos, PAGE, SECTOR};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::device::{Device, Reply, place, request};
use crate::fuse::Io;
use crate::gate::{Cut, Gate, Stop};
use crate::recorder::Recorder;
use crate::statistics::histogram;

/// The state that only one thread at a time may use.
pub(crate) struct Core {
    pub(crate) drive: Box<dyn Drive>,
    pub(crate) clock: Clock,
    pub(crate) gate: Gate,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) phases: Vec<String>,
    pub(crate) service: [Histogram<u64>; 4],
    pub(crate) late: Histogram<u64>,
    /// How much earlier answers are sent, in real nanoseconds: the round trip between client and server.
    pub(crate) ahead: u64,
    pub(crate) fidelity: Value,
    /// Whether drive time follows real time. If not, it skips to the next event whenever the host waits for a request.
    pub(crate) paced: bool,
    /// Whether the serving thread has a real-time priority.
    pub(crate) realtime: bool,
    pub(crate) cut_report: Value,
    pub(crate) replies: Vec<Reply>,
    volatile: Volatile,
    pending: HashMap<u64, Pending>,
    delayed: BinaryHeap<Reverse<(Nanos, u64)>>,
    events: Vec<Event>,
    time: Nanos,
    /// The latest completion among the answered requests, in drive time. It can be in the future: replies are sent
    /// early.
    answered: Nanos,
    next: u64,
    epoch: u32,
}

struct Pending {
    unique: u64,
    request: Request,
    offset: u64,
    length: u64,
    /// The bytes in the log: of a write whose data is kept, those that are stored.
    logged: u64,
    submitted: Nanos,
    epoch: u32,
    phase: u16,
    data: u64,
    fate: Fate,
    error: Option<i32>,
}

impl Core {
    pub(crate) fn new(drive: Box<dyn Drive>, clock: Clock, seed: u64, recorder: Option<Recorder>) -> Self {
        Self {
            drive,
            clock,
            gate: Gate::new(seed),
            recorder,
            phases: vec![String::new()],
            service: std::array::from_fn(|_| histogram()),
            late: histogram(),
            ahead: 0,
            fidelity: Value::Null,
            paced: true,
            realtime: false,
            cut_report: Value::Null,
            replies: Vec::new(),
            volatile: Volatile::default(),
            pending: HashMap::new(),
            delayed: BinaryHeap::new(),
            events: Vec::new(),
            time: 0,
            answered: 0,
            next: 1,
            epoch: 0,
        }
    }

    /// Accept a request, in drive time.
    pub(crate) fn submit(&mut self, device: &Device, unique: u64, io: Io, data: &[u8]) {
        self.time = self.time.max(self.clock.now()); // the arrival, even if the drive has looked further ahead
        let request = request(self.next, io);
        if request.op == Op::Flush {
            // A flush covers all answered requests. Replies are sent early, so the client can send a flush before the
            // drive completes a request that it covers.
            self.time = self.time.max(self.answered);
        }
        self.next += 1;
        let fate = match self.gate.pass(self.time, &request) {
            Ok(fate) => fate,
            Err(stop) => return self.refuse(device, stop, unique, request.op),
        };
        let (offset, length) = place(io);
        let mut pending = Pending {
            unique,
            request,
            offset,
            length,
            logged: length,
            submitted: self.time,
            epoch: self.epoch,
            phase: u16::try_from(self.phases.len() - 1).unwrap_or(u16::MAX),
            data: NO_DATA,
            fate,
            error: fate.error.then_some(libc::EIO),
        };
        let zeros = matches!(io, Io::Zero { .. });
        self.apply(device, &mut pending, data, zeros);
        let at_once = fate.ignored;
        self.pending.insert(request.id, pending);
        if at_once {
            self.finish(device, request.id, self.time);
        } else {
            let op = if zeros && self.drive.writes_zeros() { Op::Write } else { request.op };
            self.drive.submit(self.time, &Request { op, ..request });
        }
    }

    fn refuse(&mut self, device: &Device, stop: Stop, unique: u64, op: Op) {
        if stop == Stop::CutNow {
            self.cut(device);
        }
        device.counters.count(op, 0, true);
        self.replies.push(Reply::Failed { unique, error: libc::EIO });
    }

    /// Change the contents on arrival. The previous contents are saved for a power cut, unless they are discarded: a
    /// discard takes effect at once. `zeros`: it writes zeros, which a flush makes durable, like other writes.
    fn apply(&mut self, device: &Device, pending: &mut Pending, data: &[u8], zeros: bool) {
        if pending.error.is_some() || pending.fate.ignored {
            return;
        }
        let request = &pending.request;
        pending.error = match request.op {
            Op::Read => None,
            Op::Write => {
                let (store, id) = (&device.store, request.id);
                let (sector, sectors) = (request.sector, request.sectors);
                // Zeros over holes change nothing, unless a fault flips one of their bits.
                let saved = if pending.fate.flip.is_none() && data.chunks(PAGE).all(is_zero) {
                    self.volatile.before_zeros(store, id, sector, sectors)
                } else {
                    self.volatile.before_write(store, id, sector, sectors)
                };
                if let Some(recorder) = &mut self.recorder {
                    let stored = pending.fate.stores(pending.offset, data);
                    pending.data = recorder.keep(&stored);
                    if pending.data != NO_DATA {
                        pending.logged = stored.len() as u64;
                    }
                }
                saved.err().map(|_| libc::EIO).or_else(|| device.put(pending.offset, &pending.fate, data))
            }
            Op::Flush => {
                self.epoch += 1;
                self.volatile.flush_begins(request.id);
                None
            }
            Op::Discard => {
                let (store, id) = (&device.store, request.id);
                let (sector, sectors) = (request.sector, request.sectors);
                let saved =
                    if zeros { self.volatile.before_zeros(store, id, sector, sectors) } else { Ok(()) };
                let done = saved.and_then(|()| store.punch(pending.offset, pending.length));
                let done = done.and_then(|()| {
                    if zeros { Ok(()) } else { self.volatile.discarded(store, sector, sectors) }
                });
                done.err().map(|_| libc::EIO)
            }
        };
    }

    /// Advance time to `now`. Replies are added to `replies`.
    pub(crate) fn advance(&mut self, device: &Device, now: Nanos) {
        if self.gate.cut_at.is_some_and(|at| at <= now) {
            self.cut(device);
        }
        let mut events = std::mem::take(&mut self.events);
        self.drive.advance(now, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Persisted { sector, sectors, id } => {
                    // If the store cannot be read, the older state is kept: the medium lags behind.
                    let _ = self.volatile.persisted(&device.store, sector, sectors, id);
                }
                Event::Done { id, at } => match self.pending.get(&id).map_or(0, |pending| pending.fate.delay)
                {
                    0 => self.finish(device, id, at),
                    delay => self.delayed.push(Reverse((at + delay, id))),
                },
            }
        }
        self.events = events;
        while let Some(Reverse((at, id))) = self.delayed.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.delayed.pop();
            self.finish(device, id, at);
        }
    }

    fn finish(&mut self, device: &Device, id: u64, at: Nanos) {
        let Some(mut pending) = self.pending.remove(&id) else { return };
        let (unique, request) = (pending.unique, pending.request);
        self.answered = self.answered.max(at);
        if request.op == Op::Flush && pending.error.is_none() && !pending.fate.ignored {
            self.volatile.flush_done(id);
        }
        if let (Op::Read, Some(bit)) = (request.op, pending.fate.flip) {
            pending.error = pending.error.or_else(|| device.flip(request.sector * SECTOR, bit));
        }
        device.counters.count(request.op, pending.length, pending.error.is_some());
        let _ = self.service[request.op as usize].record(at.saturating_sub(pending.submitted));
        let _ = self.late.record(self.clock.real(self.clock.now().saturating_sub(at)));
        self.note(&pending, at);
        let length = u32::try_from(pending.length).unwrap_or(u32::MAX);
        self.replies.push(match (pending.error, request.op) {
            (Some(error), _) => Reply::Failed { unique, error },
            (None, Op::Read) => Reply::Data { unique, offset: pending.offset, length },
            (None, Op::Write) => Reply::Written { unique, length },
            (None, Op::Flush | Op::Discard) => Reply::Done { unique },
        });
    }

    fn note(&mut self, pending: &Pending, at: Nanos) {
        let Some(recorder) = &mut self.recorder else { return };
        let failed = if pending.error.is_some() { FAILED } else { 0 };
        let fault = if pending.fate == Fate::default() { 0 } else { FAULT };
        let ignored = if pending.fate.ignored { IGNORED } else { 0 };
        let record = Record {
            id: pending.request.id,
            submitted: pending.submitted,
            completed: at,
            offset: pending.offset,
            data: pending.data,
            length: u32::try_from(pending.logged).unwrap_or(u32::MAX),
            epoch: pending.epoch,
            phase: pending.phase,
            op: pending.request.op,
            flags: failed | fault | ignored,
        };
        recorder.note(&record);
    }

    /// Return the drive time at which the next event is due.
    pub(crate) fn due(&self) -> Option<Nanos> {
        let delayed = self.delayed.peek().map(|Reverse((at, _))| *at);
        [self.drive.next_event(), delayed, self.gate.cut_at].into_iter().flatten().min()
    }

    /// Skip to the next event if time is neither paced nor halted and the host waits for a request. Returns false if it
    /// does not skip.
    ///
    /// While the host computes, the drive has no more time than it would have in real time: otherwise a drive that
    /// tidies up when it is idle would do so in each pause.
    pub(crate) fn skip(&mut self) -> bool {
        let Some(at) = self.due().filter(|_| !self.paced && !self.clock.is_halted() && self.busy()) else {
            return false;
        };
        self.clock.skip_to(at);
        true
    }

    /// Arm a power cut, or cut power at once.
    pub(crate) fn arm_cut(&mut self, device: &Device, cut: Cut) {
        let now = cut.after.now();
        self.gate.cut_at = cut.after.nanoseconds.map(|after| self.clock.now() + after);
        self.gate.cut = Some(cut);
        if now {
            self.cut(device);
        }
        device.look_again(self);
    }

    /// Execute the armed power cut.
    pub(crate) fn cut(&mut self, device: &Device) {
        let Some(cut) = self.gate.cut.take() else { return };
        self.gate.cut_at = None;
        self.gate.powered = false;
        let exposed = self.volatile.bytes();
        let lost = self.volatile.cut(&device.store, cut.unflushed, cut.torn, cut.seed);
        self.drive.cut();
        self.delayed.clear();
        let mut pending: Vec<_> = self.pending.drain().map(|(_, pending)| pending).collect();
        pending.sort_unstable_by_key(|pending| pending.request.id);
        self.cut_report = json!({
            "at_ns": self.clock.now(),
            "unflushed_bytes": exposed,
            "lost_bytes": lost.ok(),
            "in_flight": pending.len(),
            "requests_before": self.next - 1,
        });
        for one in pending {
            device.counters.count(one.request.op, 0, true);
            self.replies.push(Reply::Failed { unique: one.unique, error: libc::EIO });
        }
    }

    /// Return how many bytes a power cut can lose.
    pub(crate) fn exposed(&self) -> u64 {
        self.volatile.bytes()
    }

    /// Return whether requests are in flight.
    pub(crate) fn busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Restart counters and log. The model's counters continue.
    pub(crate) fn clear(&mut self, device: &Device) -> io::Result<()> {
        self.late.reset();
        self.service.iter_mut().for_each(Histogram::reset); // clear() keeps the maximum
        device.counters.reset();
        self.recorder.as_mut().map_or(Ok(()), Recorder::restart)
    }

    /// Reset everything except the contents to the state of a new disk.
    pub(crate) fn reset(&mut self, device: &Device) -> io::Result<()> {
        self.drive.reset();
        self.gate.faults.disarm(None);
        self.gate.cut = None;
        self.gate.cut_at = None;
        self.volatile = Volatile::default();
        self.cut_report = Value::Null;
        device.look_again(self);
        self.clear(device)
    }
}
