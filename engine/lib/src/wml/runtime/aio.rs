//! Asynchronous writes: helpers write what a thread has asked for, while it goes on.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;

use crate::buffer::AlignedBuffer;

/// How many helpers one thread has: as many writes can be under way at once.
const HELPERS: usize = 16;
/// How many writes may wait.
const MOST: usize = 4096;
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Request {
    file: Arc<OwnedFd>,
    offset: u64,
    length: usize,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Request>,
    outstanding: usize,
    failure: Option<Errno>,
    closed: bool,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    data: AlignedBuffer,
}

/// The asynchronous writes of one thread.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
    helpers: Vec<JoinHandle<()>>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0
    }

    fn help(&self) {
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            let Some(request) = state.waiting.pop_front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let written = self.write(&request);
            drop(request);
            state = self.lock();
            state.outstanding -= 1;
            if let Err(errno) = written {
                state.failure.get_or_insert(errno);
            }
            self.changed.notify_all();
        }
    }

    fn write(&self, request: &Request) -> Result<(), Errno> {
        let (mut offset, mut data) = (request.offset, &self.data.as_ref()[..request.length]);
        while !data.is_empty() {
            match rustix::io::pwrite(&request.file, data, offset) {
                Ok(0) => return Err(Errno::IO),
                Ok(written) => {
                    offset += written as u64;
                    data = &data[written..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

impl Writer {
    /// Helpers that write up to `data` at once; `None` if no thread can be started.
    pub(crate) fn new(data: AlignedBuffer) -> Option<Self> {
        let queue = Arc::new(Queue { state: Mutex::default(), changed: Condvar::new(), data });
        let help = || {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new().spawn(move || queue.help()).ok()
        };
        let helpers: Vec<_> = (0..HELPERS).map_while(|_| help()).collect();
        (!helpers.is_empty()).then_some(Self { queue, helpers })
    }

    /// How much can be written at once.
    pub(crate) fn longest(&self) -> usize {
        self.queue.data.as_ref().len()
    }

    /// Asks for a write; waits only while there are too many.
    pub(crate) fn write(
        &self,
        file: Arc<OwnedFd>,
        offset: u64,
        length: usize,
        stop: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        let mut state = self.queue.lock();
        while state.waiting.len() >= MOST && !stop() {
            state = self.queue.wait(state);
        }
        state.waiting.push_back(Request { file, offset, length });
        state.outstanding += 1;
        let failure = state.failure.take();
        drop(state);
        self.queue.changed.notify_all();
        failure.map_or(Ok(()), Err)
    }

    /// Waits until half of the writes are done, or one if that is more; at most a second, as defined.
    pub(crate) fn wait(&self, stop: impl Fn() -> bool) -> Result<(), Errno> {
        let mut state = self.queue.lock();
        let wanted = (state.outstanding / 2).max(1);
        let goal = state.outstanding.saturating_sub(wanted);
        let mut looks = 1000 / 20;
        while state.outstanding > goal && looks > 0 && !stop() {
            let before = state.outstanding;
            state = self.queue.wait(state);
            looks -= u32::from(state.outstanding == before);
        }
        state.failure.take().map_or(Ok(()), Err)
    }
}

impl Drop for Writer {
    /// Drops what waits, and lets end what is under way.
    fn drop(&mut self) {
        {
            let mut state = self.queue.lock();
            state.closed = true;
            state.waiting.clear();
        }
        self.queue.changed.notify_all();
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}
