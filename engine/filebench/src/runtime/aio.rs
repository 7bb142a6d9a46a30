//! Asynchronous writes: helpers write what a thread has asked for, while it goes on. A write counts when it
//! is done, and takes from the request until then.

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

/// How many helpers one thread has, at most: as many writes can be under way at once.
const HELPERS: usize = 16;
/// How much memory they have together; where pieces are larger than a sixteenth of it there are fewer.
const MEMORY: usize = 64 << 20;
/// How many writes may wait.
const MOST: usize = 4096;
const LOOK: Duration = Duration::from_millis(20);

/// What a write is counted as.
#[derive(Debug, Clone, Copy)]
pub(super) struct Which {
    pub(super) local: usize,
    pub(super) info: usize,
    pub(super) kind: Kind,
    pub(super) late: Option<u64>,
}

/// A write that is asked for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) which: Which,
    pub(super) file: Arc<OwnedFd>,
    pub(super) offset: u64,
    pub(super) length: usize,
    /// When it was asked for.
    pub(super) asked: u64,
}

/// A write that is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completed {
    pub(super) which: Which,
    pub(super) latency: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Request>,
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

/// What one helper writes.
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

    /// Writes until there is nothing left and no more to come; returns what that took.
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
    /// Helpers that write up to `longest` bytes at once; `None` if no thread can be started.
    pub(super) fn new(longest: usize, contents: &Arc<Contents>, identity: u64) -> Result<Option<Self>> {
        let count = (MEMORY / longest.max(1)).clamp(1, HELPERS);
        memory::need("the buffers of asynchronous writes", (count * longest) as u64)?;
        let queue = Arc::<Queue>::default();
        let mut helpers = Vec::new();
        for number in 0..count as u64 {
            // Unlike what threads write themselves, and other helpers.
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

    /// How much can be written at once.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Asks for a write; waits only while there are too many.
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

    /// Waits until half of the writes are done, or one if that is more; at most a second, as defined.
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

    /// The writes that were done since this was asked last, and the first failure.
    pub(super) fn completed(&self) -> (Vec<Completed>, Option<Errno>) {
        let mut state = self.queue.lock();
        (std::mem::take(&mut state.completed), state.failure.take())
    }

    /// Lets all writes end, or only those under way; returns what the helpers have used.
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

    /// All that was asked for is written and counted, also where no operation waited for it.
    #[test]
    fn the_end_waits_for_all_writes() {
        write_all_of_a_file();
    }

    /// The CPU time of helpers counts; kernels that count it by ticks need some rounds to see any.
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
        let which = Which { local: 0, info: 0, kind: Kind::AioWrite, late: None };
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
