//! One thread: it executes its flowops in order, repeatedly, until the run ends.

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
use super::transfer::Transfer;

/// How a thread continues after a flowop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Continue with the next flowop.
    On,
    /// End the run.
    Done,
    /// The flowop found no file.
    NoFile,
}

/// Counters of one flowop of this thread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// For a limit: the part of its target's work that it has already waited for.
    pub(super) settled: u64,
}

/// Values of one flowop that are drawn once, when the thread starts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Constants {
    pub(super) value: f64,
    pub(super) working_set: u64,
}

/// The state of one thread.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared,
    pub(super) spec: &'a ThreadSpec,
    /// Number of the thread among all threads of the model.
    pub(super) index: usize,
    /// Number of its [`ThreadSpec`], and number of this instance of it.
    pub(super) place: (usize, usize),
    pub(super) sampler: Sampler,
    pub(super) slots: Slots,
    pub(super) memory: AlignedBuffer,
    /// Number of blocks of contents that this thread has generated.
    pub(super) made: u64,
    pub(super) done: Vec<Done>,
    pub(super) constants: Vec<Constants>,
    pub(super) aio: Option<Writer>,
    /// Number of writers started so far.
    pub(super) aio_writers: u64,
    /// CPU time of the helper threads of asynchronous writes that have ended.
    aio_cpu: CpuTime,
    /// Delay of the thread behind the last event that it took, in nanoseconds; `None` if no rate limits the thread.
    pub(super) late: Option<u64>,
    cpu_before: CpuTime,
}

impl<'a> Worker<'a> {
    /// Memory that a thread needs for the counters and constants of one flowop, in bytes.
    pub(super) const BYTES: usize = size_of::<Done>() + size_of::<Constants>();

    /// Create a thread that is ready to work: allocate and fill its memory, and set the priority of the calling
    /// thread. Return an error if there is not enough memory.
    pub(super) fn new(shared: &'a Shared, index: usize, place: (usize, usize)) -> Result<Self> {
        let spec = &shared.model.threads[place.0];
        let sampler = Sampler::new(&shared.distributions, shared.seed, index as u64);
        // If the run is already over, it need not wait until memory is filled.
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
            aio_writers: 0,
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

    /// Set the nice value and the I/O priority of the calling thread. Errors are ignored.
    fn set_priority(&self) {
        const IOPRIO_WHO_PROCESS: libc::c_long = 1;
        const BEST_EFFORT: libc::c_long = 2 << 13;
        if self.spec.nice != 0 {
            // SAFETY: the call takes only integers; 0 is the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.spec.nice) };
        }
        if let Some(priority) = self.spec.io_priority {
            let priority = BEST_EFFORT | libc::c_long::from(priority);
            // SAFETY: the call takes only integers; 0 is the calling thread.
            unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0_i64, priority) };
        }
    }

    /// Execute the flowops until the run is over or one of them finds no file.
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

    /// Execute each of these flowops as often as its `iters` says. Stop at the first that does not return
    /// [`Next::On`], and return its result.
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

    /// Record a flowop that started at `start` (by `now_ns`) and ends now.
    #[inline]
    pub(super) fn record(&mut self, flowop: &Flowop, start: u64, bytes: u64) {
        self.count(&self.which(flowop, false), now_ns() - start, bytes);
    }

    /// Record a write in the same way.
    #[inline]
    pub(super) fn record_write(&mut self, flowop: &Flowop, transfer: &Transfer, start: u64, bytes: u64) {
        self.count(&self.which(flowop, transfer.synced), now_ns() - start, bytes);
    }

    pub(super) fn which(&self, flowop: &Flowop, synced: bool) -> Which {
        Which { local: flowop.local, info: flowop.info, kind: flowop.kind, late: self.late, synced }
    }

    /// Record a flowop that took `latency` nanoseconds and ended now or earlier.
    #[inline]
    fn count(&mut self, which: &Which, latency: u64, bytes: u64) {
        let is_io = which.kind.class() == Class::Io;
        let late = which.late.filter(|_| is_io);
        self.shared.statistics.record(self.index, which, latency, late, bytes);
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

    /// Record the asynchronous writes that completed since the last call. Return the first error of a write.
    pub(super) fn count_completed(&mut self) -> std::result::Result<(), Errno> {
        let Some(aio) = &self.aio else { return Ok(()) };
        let (completed, failure) = aio.completed();
        for one in completed {
            self.count(&one.which, one.latency, one.bytes);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Wait for all asynchronous writes, record them, and end the helper threads. If a signal asked the process to
    /// stop, discard writes that have not started. Return the first error of a write.
    pub(super) fn drain(&mut self) -> std::result::Result<(), Errno> {
        if let Some(aio) = &mut self.aio {
            self.aio_cpu += aio.finish(fslab_engine::stop::requested().is_some());
        }
        let counted = self.count_completed();
        self.aio = None;
        counted
    }

    /// Record the bytes that a flowop transferred before the end of the run interrupted it. The operation itself is not
    /// counted. Its bytes are, because its time is part of the run.
    pub(super) fn unfinished(&mut self, flowop: &Flowop, bytes: u64) {
        self.shared.statistics.moved(self.index, flowop.info, bytes);
        self.done[flowop.local].bytes += bytes;
        if self.shared.model.needs_totals {
            self.shared.totals.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Return an error for a mistake in the workload that can be detected only while it runs.
    pub(super) fn wrong<T>(flowop: &Flowop, message: &str) -> Result<T> {
        Err(Error::Invalid(format!("flowop {}: {message}", flowop.label)))
    }

    /// Wait for asynchronous writes and close all open files. Return the first error of a write.
    pub(super) fn end(&mut self) -> Result<()> {
        let drained = self.drain().context("write", || self.spec.name.clone());
        let open = self.slots.all_entries();
        for (fileset, file) in open {
            self.shared.filesets[fileset].files.close(file);
        }
        self.slots = Slots::new(0);
        drained
    }

    /// Return the CPU time of the thread since it started to work, and that of its helper threads.
    pub(super) fn cpu(&self) -> CpuTime {
        CpuTime::of_this_thread() - self.cpu_before + self.aio_cpu
    }
}

/// Allocate memory and fill it with random bytes, which cannot be compressed.
pub(super) fn filled(length: usize, identity: u64) -> Result<AlignedBuffer> {
    let mut memory = AlignedBuffer::new(length)?;
    Stream::new(0x57_4d_4c, identity).fill(memory.as_mut());
    Ok(memory)
}
