//! One thread: its flowops in order, over and over, until it shall end.

use fslab_engine::buffer::AlignedBuffer;
use rustix::io::Errno;

use crate::ast::QuitMode;
use crate::program::{Class, Flowop, Kind, Moves, ThreadSpec};
use crate::random::Sampler;
use fslab_engine::error::{Context, Error, Result};
use fslab_engine::measure::clock::now_ns;
use fslab_engine::measure::cpu::CpuTime;
use fslab_engine::measure::recorder::Recorder;
use fslab_engine::random::Stream;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Shared;
use super::aio::{Which, Writer};
use super::slots::Slots;

/// What a flowop says of the rest of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Go on.
    On,
    /// The run is over.
    Done,
    /// There is no file for it.
    NoFile,
}

/// What this thread has done with one of its flowops.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// What a limit has already waited for.
    pub(super) settled: u64,
}

/// Values that are drawn once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Constants {
    pub(super) value: f64,
    pub(super) working_set: u64,
}

/// A thread at work.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared,
    pub(super) spec: &'a ThreadSpec,
    /// Its number among all threads.
    pub(super) index: usize,
    /// The number of its specification, and its own among those of it.
    pub(super) place: (usize, usize),
    pub(super) sampler: Sampler,
    pub(super) slots: Slots,
    pub(super) memory: AlignedBuffer,
    /// How many blocks it has made contents for.
    pub(super) made: u64,
    pub(super) done: Vec<Done>,
    pub(super) constants: Vec<Constants>,
    pub(super) aio: Option<Writer>,
    /// What the helpers of asynchronous writes have used.
    aio_cpu: CpuTime,
    /// By how much the thread was behind the event that last let it go on; `None` if no rate limits it.
    pub(super) late: Option<u64>,
    cpu_before: CpuTime,
}

impl<'a> Worker<'a> {
    /// What a thread remembers of one flowop.
    pub(super) const BYTES: usize = size_of::<Done>() + size_of::<Constants>();

    /// A thread that is ready: its memory is there and filled.
    pub(super) fn new(shared: &'a Shared, index: usize, place: (usize, usize)) -> Result<Self> {
        let spec = &shared.model.threads[place.0];
        let sampler = Sampler::new(&shared.distributions, shared.seed, index as u64);
        // A run that is over before it began shall not wait for memory.
        let memory = if shared.over() { 0 } else { shared.memory_of(spec) };
        let memory = filled(memory, index as u64)?;
        let mut worker = Self {
            shared,
            spec,
            index,
            place,
            sampler,
            slots: Slots::new(shared.filesets.len()),
            memory,
            made: 0,
            done: vec![Done::default(); spec.count],
            constants: vec![Constants::default(); spec.count],
            aio: None,
            aio_cpu: CpuTime::default(),
            late: None,
            cpu_before: CpuTime::default(),
        };
        worker.draw_constants(&spec.flowops);
        worker.set_priority();
        Ok(worker)
    }

    fn draw_constants(&mut self, flowops: &[Flowop]) {
        for flowop in flowops {
            if let Some(constants) = self.constants.get_mut(flowop.local) {
                constants.value = self.sampler.draw(&flowop.with.value);
                constants.working_set = self.sampler.whole(&flowop.with.working_set);
            }
            self.draw_constants(&flowop.children);
        }
    }

    /// Makes the thread nicer, and its I/O too. What the kernel refuses is left as it is.
    fn set_priority(&self) {
        const IOPRIO_WHO_PROCESS: libc::c_long = 1;
        const BEST_EFFORT: libc::c_long = 2 << 13;
        if self.spec.nice != 0 {
            // SAFETY: numbers only; 0 is the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.spec.nice) };
        }
        if let Some(priority) = self.spec.io_priority {
            let priority = BEST_EFFORT | libc::c_long::from(priority);
            // SAFETY: numbers only; 0 is the calling thread.
            unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0_i64, priority) };
        }
    }

    /// Works until the run is over or there is no file for it.
    pub(super) fn work(&mut self, recorder: &Recorder<'_>) -> Result<()> {
        self.cpu_before = CpuTime::of_this_thread();
        let flowops = &self.spec.flowops;
        loop {
            match self.round(flowops, recorder)? {
                Next::On => {}
                Next::Done => {
                    self.shared.end();
                    return Ok(());
                }
                Next::NoFile => {
                    self.no_file();
                    return Ok(());
                }
            }
            if self.shared.over() {
                return Ok(());
            }
        }
    }

    fn no_file(&self) {
        if self.shared.model.mode != QuitMode::AllDone {
            self.shared.end();
        }
    }

    /// One pass through flowops.
    fn round(&mut self, flowops: &[Flowop], recorder: &Recorder<'_>) -> Result<Next> {
        for flowop in flowops {
            let times = self.sampler.whole(&flowop.iters);
            for _ in 0..times {
                if self.shared.over() {
                    return Ok(Next::On);
                }
                recorder.check()?;
                let next = if flowop.kind == Kind::Composite {
                    self.round(&flowop.children, recorder)?
                } else {
                    self.perform(flowop)?
                };
                if next != Next::On {
                    if next == Next::NoFile && flowop.kind != Kind::Composite {
                        self.note_no_file(flowop);
                    }
                    return Ok(next);
                }
            }
        }
        Ok(Next::On)
    }

    fn note_no_file(&self, flowop: &Flowop) {
        if self.shared.model.mode == QuitMode::Timeout && !self.shared.over() {
            let mut first = self.shared.out_of_files.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| flowop.label.clone());
        }
    }

    fn perform(&mut self, flowop: &Flowop) -> Result<Next> {
        match flowop.kind {
            Kind::Read => self.read(flowop),
            Kind::Write => self.write(flowop),
            Kind::ReadWholeFile => self.read_whole_file(flowop),
            Kind::WriteWholeFile => self.write_whole_file(flowop),
            Kind::AppendFile => self.append(flowop, false),
            Kind::AppendFileRandom => self.append(flowop, true),
            Kind::CreateFile => self.create_file(flowop),
            Kind::OpenFile => self.open_file(flowop),
            Kind::CloseFile => self.close_file(flowop),
            Kind::DeleteFile => self.delete_file(flowop),
            Kind::StatFile => self.stat_file(flowop),
            Kind::Fsync => self.fsync(flowop),
            Kind::FsyncSet => self.fsync_set(flowop),
            Kind::MakeDirectory => self.make_directory(flowop),
            Kind::RemoveDirectory => self.remove_directory(flowop),
            Kind::ListDirectory => self.list_directory(flowop),
            Kind::AioWrite => self.aio_write(flowop),
            Kind::AioWait => self.aio_wait(flowop),
            Kind::Composite => Ok(Next::On),
            _ => Ok(self.wait_or_finish(flowop)),
        }
    }

    /// Notes that a flowop was done, from `start` until now.
    #[inline]
    pub(super) fn record(&mut self, flowop: &Flowop, start: u64, bytes: u64) {
        let which = Which { local: flowop.local, info: flowop.info, kind: flowop.kind, late: self.late };
        self.count(&which, now_ns() - start, bytes);
    }

    /// Notes that a flowop was done, now or some time ago.
    #[inline]
    fn count(&mut self, which: &Which, latency: u64, bytes: u64) {
        let is_io = which.kind.class() == Class::Io;
        let late = which.late.filter(|_| is_io);
        self.shared.statistics.record(self.index, which.info, latency, late, bytes);
        let done = &mut self.done[which.local];
        done.count += 1;
        done.bytes += bytes;
        if self.shared.model.needs_totals && is_io {
            let totals = &self.shared.totals;
            totals.operations.fetch_add(1, Ordering::Relaxed);
            if which.kind.moves() != Moves::Nothing {
                totals.transfers.fetch_add(1, Ordering::Relaxed);
                totals.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
    }

    /// Counts the asynchronous writes that were done meanwhile.
    pub(super) fn count_completed(&mut self) -> std::result::Result<(), Errno> {
        let Some(aio) = &self.aio else { return Ok(()) };
        let (completed, failure) = aio.completed();
        for one in completed {
            self.count(&one.which, one.latency, one.bytes);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Waits for all asynchronous writes, and counts them.
    pub(super) fn drain(&mut self) -> std::result::Result<(), Errno> {
        if let Some(aio) = &mut self.aio {
            self.aio_cpu += aio.finish(fslab_engine::stop::requested().is_some());
        }
        let counted = self.count_completed();
        self.aio = None;
        counted
    }

    /// Notes what a flowop has moved that the end of the run cut short: its time counts, and so do its bytes.
    pub(super) fn unfinished(&mut self, flowop: &Flowop, bytes: u64) {
        self.shared.statistics.moved(self.index, flowop.info, bytes);
        self.done[flowop.local].bytes += bytes;
        if self.shared.model.needs_totals {
            self.shared.totals.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// A mistake that only shows while it runs.
    pub(super) fn wrong<T>(flowop: &Flowop, message: &str) -> Result<T> {
        Err(Error::Invalid(format!("flowop {}: {message}", flowop.label)))
    }

    /// Lets asynchronous writes end, and closes what is open.
    pub(super) fn end(&mut self) -> Result<()> {
        let drained = self.drain().context("write", || self.spec.name.clone());
        let open = self.slots.all_entries();
        for (fileset, file) in open {
            self.shared.filesets[fileset].files.close(file);
        }
        self.slots = Slots::new(0);
        drained
    }

    /// What the thread has used since it began to work.
    pub(super) fn cpu(&self) -> CpuTime {
        CpuTime::of_this_thread() - self.cpu_before + self.aio_cpu
    }
}

/// Memory with contents that nothing can compress.
pub(super) fn filled(length: usize, identity: u64) -> Result<AlignedBuffer> {
    let mut memory = AlignedBuffer::new(length)?;
    Stream::new(0x57_4d_4c, identity).fill(memory.as_mut());
    Ok(memory)
}
