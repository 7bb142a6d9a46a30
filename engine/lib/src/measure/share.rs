//! A work queue from which threads take a few items at a time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The remaining part of `0..length`.
#[derive(Debug)]
pub struct Share {
    next: AtomicUsize,
    length: usize,
    at_once: usize,
}

impl Share {
    /// Create a queue of the items `0..length`, of which each call takes `at_once` (at least 1).
    pub fn new(length: usize, at_once: usize) -> Self {
        Self { next: AtomicUsize::new(0), length, at_once: at_once.max(1) }
    }

    /// Take the next items; `None` if none are left.
    pub fn take(&self) -> Option<Range<usize>> {
        let start = self.next.fetch_add(self.at_once, Ordering::Relaxed);
        (start < self.length).then(|| start..self.length.min(start + self.at_once))
    }
}
