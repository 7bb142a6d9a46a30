//! What is looked for: a literal, or a regular expression that never reaches beyond its line.

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// A pattern that is ready to be looked for.
#[derive(Debug)]
pub enum Pattern {
    /// These very bytes.
    Literal(Box<Finder<'static>>),
    /// What this describes; `^` and `$` are the ends of a line.
    Regex(Regex),
}

impl Pattern {
    /// Makes a pattern; a literal has to stay within a line and has to be something.
    pub fn new(text: &str, regex: bool, ignore_case: bool) -> Result<Self> {
        if !regex && (text.is_empty() || text.contains('\n')) {
            return Err(Error::Invalid("a literal pattern must be something, and within one line".into()));
        }
        if !regex && !ignore_case {
            return Ok(Self::Literal(Box::new(Finder::new(text).into_owned())));
        }
        let text = if regex { text.to_owned() } else { regex::escape(text) };
        let built =
            RegexBuilder::new(&text).unicode(false).multi_line(true).case_insensitive(ignore_case).build();
        built.map(Self::Regex).map_err(|error| Error::Invalid(format!("pattern: {error}")))
    }

    /// How far apart the ends of a match may be, where that is known.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Self::Literal(finder) => Some(finder.needle().len()),
            Self::Regex(_) => None,
        }
    }

    /// Where the first line with a match has it, at or after `from`.
    #[inline]
    pub(super) fn find(&self, haystack: &[u8], from: usize) -> Option<usize> {
        match self {
            Self::Literal(finder) => finder.find(&haystack[from..]).map(|at| from + at),
            Self::Regex(regex) => find_within_lines(regex, haystack, from),
        }
    }
}

/// The start of the first match that stays within its line. A leftmost match starts in the first line
/// that has any; if it runs on beyond that line, the line is asked alone, and then comes the next.
fn find_within_lines(regex: &Regex, haystack: &[u8], mut from: usize) -> Option<usize> {
    while from <= haystack.len() {
        let found = regex.find_at(haystack, from)?;
        let end =
            memchr::memchr(b'\n', &haystack[found.start()..]).map_or(haystack.len(), |at| found.start() + at);
        if found.end() <= end {
            // After a last newline there is no further line.
            return (found.start() < haystack.len() || !haystack.ends_with(b"\n")).then_some(found.start());
        }
        let start = memchr::memrchr(b'\n', &haystack[..found.start()]).map_or(0, |at| at + 1);
        if regex.is_match(&haystack[start..end]) {
            return Some(found.start());
        }
        from = end + 1;
    }
    None
}
