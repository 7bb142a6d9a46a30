//! Asynchronous writes. Helper threads execute the writes that a thread requests, while the thread continues. A write
//! is counted when it completes. Its latency is the time from the request to the completion.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;

use crate::program::Kind;
use fslab_engine::buffer::AlignedBuffer;
use fslab_engine::contents::{BLOCK, Contents};
use fslab_engine::error::Result;
use fslab_engine::measure::clock::now_ns;
use fslab_engine::measure::cpu::CpuTime;
use fslab_engine::memory;

use super::transfer::write_at;

/// Maximum number of helper threads of one thread, and so of its writes in flight.
const HELPERS: usize = 16;
/// Maximum total size of the helpers' buffers in bytes. If writes are larger than a sixteenth of it, there are fewer
/// helpers, but at least one, whose buffer may be larger.
const MEMORY: usize = 64 << 20;
/// Maximum number of writes in the queue.
const MOST: usize = 4096;
/// Interval at which a waiting thread checks whether it must stop.
const LOOK: Duration = Duration::from_millis(20);

/// The flowop that an operation is recorded for, and the delay to record with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Which {
    pub(super) local: usize,
    pub(super) info: usize,
    pub(super) kind: Kind,
    pub(super) late: Option<u64>,
    /// Whether it wrote to a file that was opened with `O_SYNC`.
    pub(super) synced: bool,
}

/// A requested write.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) which: Which,
    pub(super) file: Arc<OwnedFd>,
    pub(super) offset: u64,
    pub(super) length: usize,
    /// Time of the request, by `now_ns`.
    pub(super) asked: u64,
}

/// A completed write. The latency is in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completed {
    pub(super) which: Which,
    pub(super) latency: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Request>,
    /// Number of writes that are queued or in flight.
    outstanding: usize,
    completed: Vec<Completed>,
    failure: Option<Errno>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

/// The asynchronous writes of one thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    helpers: Vec<JoinHandle<CpuTime>>,
    longest: usize,
}

/// Generator of the data that one helper writes.
struct Source {
    contents: Arc<Contents>,
    identity: u64,
    made: u64,
    buffer: AlignedBuffer,
}

impl Source {
    fn write(&mut self, request: &Request) -> Result<(), Errno> {
        let piece = &mut self.buffer.as_mut()[..request.length];
        self.contents.fill(self.identity, self.made, piece);
        self.made += request.length.div_ceil(BLOCK) as u64;
        write_at(&request.file, piece, request.offset)
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Execute requests until the queue is closed and empty. Return the CPU time of the calling thread.
    fn help(&self, mut source: Source) -> CpuTime {
        let mut state = self.lock();
        loop {
            let Some(request) = state.waiting.pop_front() else {
                if state.closed {
                    return CpuTime::of_this_thread();
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let written = source.write(&request);
            let latency = now_ns().saturating_sub(request.asked);
            state = self.lock();
            state.outstanding -= 1;
            match written {
                Ok(()) => {
                    let bytes = request.length as u64;
                    state.completed.push(Completed { which: request.which, latency, bytes });
                }
                Err(errno) => _ = state.failure.get_or_insert(errno),
            }
            self.changed.notify_all();
        }
    }
}

impl Writer {
    /// Start helpers for writes of up to `longest` bytes. Return `None` if no thread can be started, and an error if
    /// there is not enough memory for their buffers.
    pub(super) fn new(longest: usize, contents: &Arc<Contents>, identity: u64) -> Result<Option<Self>> {
        let count = (MEMORY / longest.max(1)).clamp(1, HELPERS);
        memory::need("the buffers of asynchronous writes", (count * longest) as u64)?;
        let queue = Arc::<Queue>::default();
        let mut helpers = Vec::new();
        for number in 0..count as u64 {
            // Each helper has an identity of its own, so that its data differs from that of threads and other helpers.
            let identity = (identity << 8 | number) + (1 << 40);
            let buffer = AlignedBuffer::new(longest)?;
            let source = Source { contents: Arc::clone(contents), identity, made: 0, buffer };
            let own = Arc::clone(&queue);
            match std::thread::Builder::new().spawn(move || own.help(source)) {
                Ok(helper) => helpers.push(helper),
                Err(_) => break,
            }
        }
        Ok((!helpers.is_empty()).then_some(Self { queue, helpers, longest }))
    }

    /// Return the maximum length of a write in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Queue a write. Wait only while the queue is full and `stop` returns false.
    pub(super) fn write(&self, request: Request, stop: impl Fn() -> bool) {
        let mut state = self.queue.lock();
        while state.waiting.len() >= MOST && !stop() {
            state = self.queue.wait(state);
        }
        state.waiting.push_back(request);
        state.outstanding += 1;
        drop(state);
        self.queue.changed.notify_all();
    }

    /// Wait until half of the outstanding writes, and at least one, have completed. Return earlier if `stop` returns
    /// true, or after one second in total without a completion. The half and the second are those of Filebench.
    pub(super) fn wait(&self, stop: impl Fn() -> bool) {
        let mut state = self.queue.lock();
        let wanted = (state.outstanding / 2).max(1);
        let goal = state.outstanding.saturating_sub(wanted);
        let mut looks = 1000 / 20;
        while state.outstanding > goal && looks > 0 && !stop() {
            let before = state.outstanding;
            state = self.queue.wait(state);
            looks -= u32::from(state.outstanding == before);
        }
    }

    /// Return the writes that completed since the last call, and the first failure since then.
    pub(super) fn completed(&self) -> (Vec<Completed>, Option<Errno>) {
        let mut state = self.queue.lock();
        (std::mem::take(&mut state.completed), state.failure.take())
    }

    /// Wait for all writes and end the helpers. With `only_under_way`, discard writes that have not started. Return the
    /// CPU time of the helpers.
    pub(super) fn finish(&mut self, only_under_way: bool) -> CpuTime {
        {
            let mut state = self.queue.lock();
            state.closed = true;
            if only_under_way {
                state.waiting.clear();
            }
        }
        self.queue.changed.notify_all();
        let used = self.helpers.drain(..).filter_map(|helper| helper.join().ok());
        used.fold(CpuTime::default(), |sum, used| sum + used)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All requested writes are executed and counted, even without an `aiowait`.
    #[test]
    fn the_end_waits_for_all_writes() {
        write_all_of_a_file();
    }

    /// `finish` returns the CPU time of the helpers. Kernels that account CPU time by ticks need several rounds to
    /// measure any.
    #[test]
    fn what_the_helpers_used_is_told() {
        assert!((0..500).map(|_| write_all_of_a_file()).any(|used| used.user_ns + used.system_ns > 0));
    }

    fn write_all_of_a_file() -> CpuTime {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("fslab-aio-{}-{number}", std::process::id()));
        let file = std::fs::File::create_new(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let file: Arc<OwnedFd> = Arc::new(file.into());
        let mut writer = Writer::new(BLOCK, &Arc::new(Contents::new(1)), 0).unwrap().unwrap();
        let which = Which { local: 0, info: 0, kind: Kind::AioWrite, late: None, synced: false };
        for number in 0..500 {
            let (file, asked) = (Arc::clone(&file), now_ns());
            let offset = number * BLOCK as u64;
            writer.write(Request { which, file, offset, length: BLOCK, asked }, || true);
        }
        let used = writer.finish(false);
        let (completed, failure) = writer.completed();
        assert_eq!((completed.len(), failure), (500, None));
        assert_eq!(completed.iter().map(|one| one.bytes).sum::<u64>(), 500 * BLOCK as u64);
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 500 * 4096);
        used
    }
}
