//! Counting the lines with a match in a file that is read piece by piece.

use super::Pattern;
use crate::error::Result;
use crate::memory;

/// How much of a line that is longer than the window is kept for a regular expression: a match that
/// is longer may be missed there.
const KEPT_OF_LONG_LINE: usize = 64 << 10;

/// The piece of the file that is looked at: what was left over, then what was read.
pub(super) struct Window {
    bytes: Vec<u8>,
    length: usize,
}

impl Window {
    pub(super) fn new(read_bytes: usize) -> Result<Self> {
        Ok(Self { bytes: memory::zeroed(read_bytes.saturating_add(KEPT_OF_LONG_LINE))?, length: 0 })
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    pub(super) fn free(&mut self) -> &mut [u8] {
        &mut self.bytes[self.length..]
    }

    pub(super) fn filled(&mut self, count: usize) {
        self.length += count;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(super) fn consume(&mut self, used: usize) {
        self.bytes.copy_within(used..self.length, 0);
        self.length -= used;
    }
}

/// Counts the lines with a match in one file after another.
pub(super) struct Scanner<'a> {
    pattern: &'a Pattern,
    lines: u64,
    /// The line under way has been counted, and goes on in the next window.
    counted: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(pattern: &'a Pattern) -> Self {
        Self { pattern, lines: 0, counted: false }
    }

    /// A new file.
    pub(super) fn start(&mut self) {
        self.lines = 0;
        self.counted = false;
    }

    /// The lines counted in this file.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Counts in this window and returns how much of it is done with.
    pub(super) fn scan(&mut self, window: &[u8], is_last: bool) -> usize {
        if is_last {
            self.count(window);
            return window.len();
        }
        match memchr::memrchr(b'\n', window) {
            Some(newline) => {
                self.count(&window[..=newline]);
                self.counted = false;
                // Most of a window without a newline in its last part need not be looked at again.
                (newline + 1).max(self.skippable(window, newline + 1))
            }
            None => self.skippable(window, 0),
        }
    }

    /// Deals with the start of a line that does not end in this window, if it is long.
    fn skippable(&mut self, window: &[u8], start: usize) -> usize {
        let kept = self.pattern.length().map_or(KEPT_OF_LONG_LINE, |length| length.max(1) - 1);
        if window.len() - start < KEPT_OF_LONG_LINE {
            return start;
        }
        if !self.counted && self.pattern.find(&window[start..], 0).is_some() {
            self.lines += 1;
            self.counted = true;
        }
        window.len() - kept.min(window.len() - start)
    }

    #[inline]
    fn count(&mut self, text: &[u8]) {
        let mut from = 0;
        if self.counted {
            let Some(newline) = memchr::memchr(b'\n', text) else { return };
            from = newline + 1;
        }
        while from < text.len() {
            let Some(at) = self.pattern.find(text, from) else { return };
            self.lines += 1;
            let Some(newline) = memchr::memchr(b'\n', &text[at..]) else { return };
            from = at + newline + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts as the scanner does, with this many bytes per read.
    fn scanned(text: &[u8], pattern: &Pattern, read_bytes: usize) -> u64 {
        let mut scanner = Scanner::new(pattern);
        let mut window = Window::new(read_bytes).unwrap();
        let mut rest = text;
        loop {
            let free = window.free();
            let count = rest.len().min(free.len());
            let is_last = count < free.len();
            free[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            window.filled(count);
            let used = scanner.scan(window.bytes(), is_last);
            if is_last {
                return scanner.lines();
            }
            window.consume(used);
        }
    }

    fn expected(text: &[u8], matches: impl Fn(&[u8]) -> bool) -> u64 {
        let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        lines.pop_if(|line| line.is_empty());
        lines.into_iter().filter(|line| matches(line)).count() as u64
    }

    #[test]
    fn lines_are_counted_once_however_long() {
        let literal = Pattern::new("needle", false, false).unwrap();
        let regex = Pattern::new("ne+dle", true, false).unwrap();
        let long = "x".repeat(200_000);
        let text = format!("needle needle\n{long}needle{long}needle\nnothing\n{long}\nneedle{long}\nneedle");
        let want = expected(text.as_bytes(), |line| memchr::memmem::find(line, b"needle").is_some());
        assert_eq!(want, 4);
        for read_bytes in [4096, 10_000, 100_000, 1 << 20] {
            assert_eq!(scanned(text.as_bytes(), &literal, read_bytes), want, "literal, {read_bytes}");
            assert_eq!(scanned(text.as_bytes(), &regex, read_bytes), want, "regex, {read_bytes}");
        }
    }

    #[test]
    fn a_regex_never_reaches_beyond_its_line() {
        let cases: [(&str, &str, u64); 8] = [
            (r"a\sb", "a\nb\na b\n", 1),
            (r"a[^x]*b", "a\nb\nab\n", 1),
            ("^b$", "a\nb\nb", 2),
            ("x*", "a\nb\n", 2),
            ("^$", "a\n\nb\n", 1),
            ("(?i)A", "a\nA\nb", 2),
            (r"a(\n|c)?", "ab\nac\na\n", 3),
            (r"\n", "a\nb\n", 0),
        ];
        for (pattern, text, lines) in cases {
            let pattern_made = Pattern::new(pattern, true, false).unwrap();
            assert_eq!(scanned(text.as_bytes(), &pattern_made, 4096), lines, "{pattern} in {text:?}");
        }
    }
}
