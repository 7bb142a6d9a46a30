//! A failed allocation leads to an error document, wherever in the program it happens.
//!
//! The standard library ends a process whose allocation fails, by SIGABRT and without a word of ours. Lists that grow
//! with what is found ask beforehand (`fslab_engine::memory`); this is for all that cannot: hash tables, text, JSON.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fslab_engine::document::PROTOCOL;
use fslab_engine::{VERSION, memory};

/// From this size on an allocation is held against the memory that is free: the kernel grants more than there is, and
/// ends a process later. Smaller ones are too many to look each time.
const LARGE: usize = 8 << 20;

/// The size of the allocation that failed last.
static REFUSED: AtomicUsize = AtomicUsize::new(0);
/// Whether the failure is wanted as JSON.
static JSON: AtomicBool = AtomicBool::new(false);

struct Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

impl Watched {
    /// What `grant` gives, or null for more than is free.
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

// SAFETY: all of it is the system's allocator, but for null where that would be allowed to give null as well.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that it asks for.
        Self::granted(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that it asks for.
        Self::granted(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those that it asks for.
        Self::granted(size.saturating_sub(layout.size()), || unsafe { System.realloc(place, layout, size) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that it asks for.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Makes an abort after a failed allocation a failure that is said.
pub(crate) fn install(json: bool) {
    JSON.store(json, Ordering::Relaxed);
    // SAFETY: the action is zeroed, which is valid, then filled in; the handler calls only what is
    // async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_abort as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGABRT, &raw const action, std::ptr::null_mut());
    }
}

/// Any other abort goes on to its end: `abort` raises the signal again without a handler.
extern "C" fn on_abort(_signal: libc::c_int) {
    let bytes = REFUSED.load(Ordering::Relaxed);
    if bytes == 0 {
        return;
    }
    let mut text = Text { bytes: [0; 512], length: 0 };
    let result = if JSON.load(Ordering::Relaxed) { text.document(bytes) } else { Ok(()) };
    let written = &text.bytes[..text.length];
    // SAFETY: the buffer is ours and as long as said; `write` and `_exit` are async-signal-safe.
    unsafe {
        if result.is_ok() {
            libc::write(libc::STDOUT_FILENO, written.as_ptr().cast(), written.len());
        }
        libc::_exit(1)
    }
}

/// Text without an allocation.
struct Text {
    bytes: [u8; 512],
    length: usize,
}

impl Text {
    /// As `Failure` has it: both have the shape of `engine/golden/error.json`.
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
