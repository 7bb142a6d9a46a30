//! A list of work that threads take from, a few items at a time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is left of `0..length`.
#[derive(Debug)]
pub struct Share {
    next: AtomicUsize,
    length: usize,
    at_once: usize,
}

impl Share {
    /// All of `0..length`, to be taken `at_once` at a time.
    pub fn new(length: usize, at_once: usize) -> Self {
        Self { next: AtomicUsize::new(0), length, at_once: at_once.max(1) }
    }

    /// The next few; `None` when all are taken.
    pub fn take(&self) -> Option<Range<usize>> {
        let start = self.next.fetch_add(self.at_once, Ordering::Relaxed);
        (start < self.length).then(|| start..self.length.min(start + self.at_once))
    }
}
