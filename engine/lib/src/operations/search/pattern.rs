//! Search patterns: a literal, or a regular expression whose matches stay within a line.

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_automata::{Anchored, MatchError};
use regex_syntax::hir::Look;

use crate::error::{Error, Result};

/// A compiled pattern.
#[derive(Debug)]
pub enum Pattern {
    /// An exact byte string.
    Literal(Box<Finder<'static>>),
    /// A regular expression; `^` and `$` match at the start and the end of a line. The automaton is the same
    /// expression, for lines that are read piece by piece.
    Regex(Regex, Box<DFA>),
}

impl Pattern {
    /// Compile a pattern. Fails if a literal is empty or contains a newline, or if a regular expression is invalid or
    /// contains `\A` or `\z`.
    pub fn new(text: &str, regex: bool, ignore_case: bool) -> Result<Self> {
        if !regex && (text.is_empty() || text.contains('\n')) {
            return Err(Error::Invalid(
                "a literal pattern must not be empty and must not contain a newline".into(),
            ));
        }
        if !regex && !ignore_case {
            return Ok(Self::Literal(Box::new(Finder::new(text).into_owned())));
        }
        let text = if regex { text.to_owned() } else { regex::escape(text) };
        let built =
            RegexBuilder::new(&text).unicode(false).multi_line(true).case_insensitive(ignore_case).build();
        let regex = built.map_err(|error| Error::Invalid(format!("pattern: {error}")))?;
        let automaton = automaton(&text, ignore_case)?;
        Ok(Self::Regex(regex, Box::new(automaton)))
    }

    /// Return the length of a literal in bytes; 0 for a regular expression.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Literal(finder) => finder.needle().len(),
            Self::Regex(..) => 0,
        }
    }

    /// Return a searcher for a line that is read piece by piece; `None` for a literal.
    pub(super) fn line(&self) -> Option<Line<'_>> {
        match self {
            Self::Literal(_) => None,
            Self::Regex(_, automaton) => Some(Line::new(automaton)),
        }
    }

    /// Return a position in the first line that has a match, at or after `from`; `None` if there is no such line.
    #[inline]
    pub(super) fn find(&self, haystack: &[u8], from: usize) -> Option<usize> {
        match self {
            Self::Literal(finder) => finder.find(&haystack[from..]).map(|at| from + at),
            Self::Regex(regex, _) => find_within_lines(regex, haystack, from),
        }
    }
}

/// Return a position in the first line that has a match of its own, at or after `from`. A leftmost match starts in the
/// first line that can have one. If it extends beyond that line, the line is searched alone, and then the next line.
fn find_within_lines(regex: &Regex, haystack: &[u8], mut from: usize) -> Option<usize> {
    while from <= haystack.len() {
        let found = regex.find_at(haystack, from)?;
        let end =
            memchr::memchr(b'\n', &haystack[found.start()..]).map_or(haystack.len(), |at| found.start() + at);
        if found.end() <= end {
            // There is no line after a final newline.
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

/// Build the automaton of an expression. Fails for `\A` and `\z`, because a file is read in pieces, and for expressions
/// that no automaton supports.
fn automaton(text: &str, ignore_case: bool) -> Result<DFA> {
    let wrong = |why: String| Error::Invalid(format!("pattern: {why}"));
    let parsed =
        regex_syntax::ParserBuilder::new().unicode(false).utf8(false).multi_line(true).build().parse(text);
    let looks = parsed.map_err(|error| wrong(error.to_string()))?.properties().look_set();
    if looks.contains(Look::Start) || looks.contains(Look::End) {
        return Err(wrong(
            "\\A and \\z are not supported; use ^ and $ for the start and end of a line".into(),
        ));
    }
    let syntax =
        syntax::Config::new().unicode(false).utf8(false).multi_line(true).case_insensitive(ignore_case);
    let (mut builder, thompson) = (DFA::builder(), thompson::Config::new().utf8(false));
    builder.syntax(syntax).thompson(thompson).build(text).map_err(|error| wrong(error.to_string()))
}

/// Search in a line that is read piece by piece. Its memory does not depend on the length of the line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    automaton: &'a DFA,
    cache: Cache,
    state: Option<LazyStateID>,
    matched: bool,
}

impl<'a> Line<'a> {
    fn new(automaton: &'a DFA) -> Self {
        Self { automaton, cache: automaton.create_cache(), state: None, matched: false }
    }

    /// Start a line.
    pub(super) fn start(&mut self) -> Result<()> {
        let at = start::Config::new().anchored(Anchored::No).look_behind(Some(b'\n'));
        let state = self.automaton.start_state(&mut self.cache, &at);
        self.state = Some(state.map_err(|error| Error::Invalid(format!("pattern: {error}")))?);
        self.matched = false;
        Ok(())
    }

    /// Discard the current line.
    pub(super) fn forget(&mut self) {
        self.state = None;
    }

    /// Return whether a line has been started and has not ended.
    pub(super) fn is_under_way(&self) -> bool {
        self.state.is_some()
    }

    /// Search the next piece of the line.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<()> {
        for &byte in piece {
            if self.matched {
                break;
            }
            self.step(byte)?;
        }
        Ok(())
    }

    /// End the line. Returns whether it has a match. The automaton reports a match one byte late; therefore it also
    /// reads the newline, which is not part of the line.
    pub(super) fn end(&mut self) -> Result<bool> {
        self.feed(b"\n")?;
        self.state = None;
        Ok(self.matched)
    }

    #[inline]
    fn step(&mut self, byte: u8) -> Result<()> {
        let Some(state) = self.state else { return Ok(()) };
        let next = self.automaton.next_state(&mut self.cache, state, byte);
        let next = next.map_err(|_| Error::Invalid(format!("pattern: {}", MatchError::gave_up(0))))?;
        self.matched = next.is_match();
        self.state = Some(next);
        Ok(())
    }
}
