//! Counting of the matching lines of a file that is read piece by piece.

use super::Pattern;
use super::pattern::Line;
use crate::error::Result;
use crate::memory;

/// Length in bytes from which an incomplete line is searched piece by piece. A shorter one is searched when it is
/// complete.
const LONG_LINE: usize = 64 << 10;

/// The part of the file that is in memory: the bytes left over from the last scan, then the bytes read since.
pub(super) struct Window {
    bytes: Vec<u8>,
    length: usize,
    /// Bytes that are read at once.
    piece: usize,
}

impl Window {
    /// Create a window with room for `read_bytes` and for as many bytes as can be left over.
    pub(super) fn new(read_bytes: usize, pattern: &Pattern) -> Result<Self> {
        let left_over = LONG_LINE.max(pattern.length());
        Ok(Self {
            bytes: memory::zeroed(read_bytes.saturating_add(left_over))?,
            length: 0,
            piece: read_bytes,
        })
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    /// Return the place of the next piece.
    pub(super) fn free(&mut self) -> &mut [u8] {
        let end = self.bytes.len().min(self.length + self.piece);
        &mut self.bytes[self.length..end]
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

/// Counter of matching lines, for one file after another.
pub(super) struct Scanner<'a> {
    pattern: &'a Pattern,
    lines: u64,
    /// The current long line. `None` if the pattern is a literal.
    line: Option<Line<'a>>,
    /// Whether the current line contains the literal, has been counted, and continues in the next window.
    counted: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(pattern: &'a Pattern) -> Self {
        Self { pattern, lines: 0, line: pattern.line(), counted: false }
    }

    /// Start a new file.
    pub(super) fn start(&mut self) {
        self.lines = 0;
        if let Some(line) = &mut self.line {
            line.forget();
        }
        self.counted = false;
    }

    /// Return the number of matching lines of this file.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Count the matching lines in this window. Returns the number of bytes that are no longer needed.
    pub(super) fn scan(&mut self, window: &[u8], is_last: bool) -> Result<usize> {
        let start = self.go_on(window, is_last)?;
        let rest = &window[start..];
        if is_last {
            self.count(rest);
            return Ok(window.len());
        }
        let Some(newline) = memchr::memrchr(b'\n', rest) else {
            return Ok(start + self.skippable(rest)?);
        };
        self.count(&rest[..=newline]);
        self.counted = false;
        Ok(start + newline + 1 + self.skippable(&rest[newline + 1..])?)
    }

    /// Continue a long line for a regular expression. Returns the offset of the next line, or the length of the window
    /// if the line does not end in it; 0 if there is no long line.
    fn go_on(&mut self, window: &[u8], is_last: bool) -> Result<usize> {
        let Some(line) = self.line.as_mut().filter(|line| line.is_under_way()) else { return Ok(0) };
        let newline = memchr::memchr(b'\n', window);
        line.feed(&window[..newline.unwrap_or(window.len())])?;
        if newline.is_some() || is_last {
            self.lines += u64::from(line.end()?);
        }
        Ok(newline.map_or(window.len(), |newline| newline + 1))
    }

    /// Search the start of a line that does not end in this window, if it is long. Returns the number of bytes that
    /// need not be searched again.
    fn skippable(&mut self, tail: &[u8]) -> Result<usize> {
        if tail.len() < LONG_LINE {
            return Ok(0);
        }
        if let Some(line) = &mut self.line {
            line.start()?;
            line.feed(tail)?;
            return Ok(tail.len());
        }
        if !self.counted && self.pattern.find(tail, 0).is_some() {
            self.lines += 1;
            self.counted = true;
        }
        Ok(tail.len() - (self.pattern.length().max(1) - 1).min(tail.len()))
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

    /// Count the matching lines as a search does, with a buffer of this size.
    fn scanned(text: &[u8], pattern: &Pattern, read_bytes: usize) -> u64 {
        let mut scanner = Scanner::new(pattern);
        let mut window = Window::new(read_bytes, pattern).unwrap();
        let mut rest = text;
        loop {
            let free = window.free();
            let count = rest.len().min(free.len());
            let is_last = count < free.len();
            free[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            window.filled(count);
            let used = scanner.scan(window.bytes(), is_last).unwrap();
            if is_last {
                return scanner.lines();
            }
            window.consume(used);
        }
    }

    fn expected(text: &[u8], matches: impl Fn(&[u8]) -> bool) -> u64 {
        let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        if lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
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
    fn anchors_and_word_boundaries_are_those_of_the_line_however_long() {
        let lengths = [(64 << 10) - 1, 64 << 10, (64 << 10) + 4096, 200_000];
        for length in lengths {
            let x = "x".repeat(length);
            let cases: [(&str, String, u64); 12] = [
                ("^needle", format!("{x}needle\nneedle{x}\n"), 1),
                ("needle$", format!("{x}needle{x}\n{x}needle\n{x}needle"), 2),
                ("^x*$", format!("{x}\n{x}y\ny{x}\n{x}{x}"), 2),
                (r"\bx+\b", format!("{x}\ny{x}\n{x}y\n y{x} {x}\n"), 2),
                (r"\Bx{3}$", format!("{x}\n xxx\n"), 1),
                ("^$", format!("{x}\n\n{x}"), 1),
                ("y*", format!("{x}\n\n{x}"), 3),
                ("^x+y+$", format!("{x}yy\n{x}\n{x}{x}y"), 2),
                (r"x\s", format!("{x}\n{x} \n"), 1),
                (r"x\ny", format!("{x}\ny{x}\n"), 0),
                ("(?i)^X+Y$", format!("{x}y\n{x}\n"), 1),
                (r"(?R)x$", format!("{x}\r\n{x}y\r\n"), 1),
            ];
            for (pattern, text, lines) in &cases {
                let made = Pattern::new(pattern, true, false).unwrap();
                for read_bytes in [4096, 10_000, 1 << 20] {
                    let found = scanned(text.as_bytes(), &made, read_bytes);
                    assert_eq!(found, *lines, "{pattern} with x of {length}, {read_bytes} at once");
                }
            }
        }
    }

    #[test]
    fn a_literal_longer_than_the_window_is_found() {
        let needle = "y".repeat(100_000);
        let pattern = Pattern::new(&needle, false, false).unwrap();
        let text = format!("{}{needle}z\n{}", "x".repeat(70_000), &needle[1..]);
        assert_eq!(scanned(text.as_bytes(), &pattern, 4096), 1);
    }

    #[test]
    fn the_ends_of_the_text_are_refused() {
        for pattern in [r"\Aa", r"a\z", "(?-m)^a", "(?-m:a$)", r"b|(\Aa)*"] {
            assert!(Pattern::new(pattern, true, false).is_err(), "{pattern}");
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
