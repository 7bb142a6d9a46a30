//! The global allocator: a failed allocation leads to an error document, wherever in the program it happens.
//!
//! The standard library ends a process with SIGABRT if an allocation fails. Lists that grow with their input check the
//! free memory first (`fslab_engine::memory`). This module handles everything else: hash tables, text, JSON.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fslab_engine::document::PROTOCOL;
use fslab_engine::{VERSION, memory};

/// Size in bytes from which an allocation is compared with the free memory, because the kernel overcommits memory and
/// kills the process later. Smaller allocations are too frequent for this check.
const LARGE: usize = 8 << 20;

/// Size in bytes of the allocation that failed last; 0 if none has failed.
static REFUSED: AtomicUsize = AtomicUsize::new(0);
/// Whether to write the failure as JSON.
static JSON: AtomicBool = AtomicBool::new(false);

struct Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

impl Watched {
    /// Return the result of `grant`, or null if a large allocation exceeds the free memory. Store the size of a
    /// failure.
    #[inline]
    fn granted(bytes: usize, grant: impl FnOnce() -> *mut u8) -> *mut u8 {
        let fits = bytes < LARGE || memory::free().is_none_or(|free| bytes as u64 <= free);
        let place = if fits { grant() } else { std::ptr::null_mut() };
        if place.is_null() {
            REFUSED.store(bytes, Ordering::Relaxed);
        }
        place
    }
}

// SAFETY: all methods forward to `System`. They may also return null, which is always permitted for an allocation.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract, which is the same for `System`.
        Self::granted(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract, which is the same for `System`.
        Self::granted(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller fulfils the contract, which is the same for `System`.
        Self::granted(size.saturating_sub(layout.size()), || unsafe { System.realloc(place, layout, size) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract, which is the same for `System`.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Install a handler for SIGABRT that reports a failed allocation and exits with status 1.
pub(crate) fn install(json: bool) {
    JSON.store(json, Ordering::Relaxed);
    // SAFETY: the action is zeroed, which is valid, then filled in; the handler calls only async-signal-safe functions.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_abort as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGABRT, &raw const action, std::ptr::null_mut());
    }
}

/// Report a failed allocation and exit. Any other abort proceeds: `abort` raises the signal again without a handler.
extern "C" fn on_abort(_signal: libc::c_int) {
    let bytes = REFUSED.load(Ordering::Relaxed);
    if bytes == 0 {
        return;
    }
    let mut text = Text { bytes: [0; 512], length: 0 };
    let result = if JSON.load(Ordering::Relaxed) { text.document(bytes) } else { Ok(()) };
    let written = &text.bytes[..text.length];
    // SAFETY: `written` is valid for its length; `write` and `_exit` are async-signal-safe.
    unsafe {
        if result.is_ok() {
            libc::write(libc::STDOUT_FILENO, written.as_ptr().cast(), written.len());
        }
        libc::_exit(1)
    }
}

/// A text buffer of fixed size, because no memory can be allocated.
struct Text {
    bytes: [u8; 512],
    length: usize,
}

impl Text {
    /// Write the error document, in the same shape as `Failure`: that of `engine/golden/error.json`.
    fn document(&mut self, bytes: usize) -> std::fmt::Result {
        use std::fmt::Write;
        writeln!(
            self,
            r#"{{"protocol": {PROTOCOL}, "engine": "{VERSION}", "error": {{"kind": "no_memory", "path": null, "message": "cannot allocate {bytes} bytes of memory"}}}}"#
        )
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
