//! What is looked for: a literal, or a regular expression that never reaches beyond its line.

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

/// A pattern that is ready to be looked for.
#[derive(Debug)]
pub enum Pattern {
    /// These very bytes.
    Literal(Box<Finder<'static>>),
    /// What this describes; `^` and `$` are the ends of a line. The automaton is the same expression, for lines
    /// that are read piece by piece.
    Regex(Regex, Box<DFA>),
}

impl Pattern {
    /// Makes a pattern; a literal has to stay within a line and has to be something.
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

    /// How long a literal is; 0 for a regular expression.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Literal(finder) => finder.needle().len(),
            Self::Regex(..) => 0,
        }
    }

    /// What looks at one line piece by piece, for a regular expression.
    pub(super) fn line(&self) -> Option<Line<'_>> {
        match self {
            Self::Literal(_) => None,
            Self::Regex(_, automaton) => Some(Line::new(automaton)),
        }
    }

    /// Where the first line with a match has it, at or after `from`.
    #[inline]
    pub(super) fn find(&self, haystack: &[u8], from: usize) -> Option<usize> {
        match self {
            Self::Literal(finder) => finder.find(&haystack[from..]).map(|at| from + at),
            Self::Regex(regex, _) => find_within_lines(regex, haystack, from),
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

/// The automaton of an expression; one that asks for the ends of the text is refused, because a file is read
/// in pieces, and so is what no automaton can do.
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

/// A line that is looked at piece by piece: whether it has a match, in memory that does not depend on its length.
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

    /// At the start of a line.
    pub(super) fn start(&mut self) -> Result<()> {
        let at = start::Config::new().anchored(Anchored::No).look_behind(Some(b'\n'));
        let state = self.automaton.start_state(&mut self.cache, &at);
        self.state = Some(state.map_err(|error| Error::Invalid(format!("pattern: {error}")))?);
        self.matched = false;
        Ok(())
    }

    /// Between two lines.
    pub(super) fn forget(&mut self) {
        self.state = None;
    }

    /// Whether a line is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.state.is_some()
    }

    /// A piece of the line.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<()> {
        for &byte in piece {
            if self.matched {
                break;
            }
            self.step(byte)?;
        }
        Ok(())
    }

    /// What ends the line is seen, but is no part of it: a match is told one byte late. Returns whether the line
    /// has one.
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
