//! Diagnostics for errors in a workload file: position, message and hint. Nothing is printed here.
//!
//! The crate annotate-snippets is not used: it needs more code here, and it prints six lines for each error instead of
//! three, without the form `file:line:column: message` that editors and other programs parse.

use std::fmt::{self, Write};

/// A source of commands: the workload file, a loaded personality or a `--set` option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Name in messages.
    pub name: String,
    /// Complete text.
    pub text: String,
}

/// A range within one line of a source. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Index of the source in [`Diagnostics::sources`].
    pub source: usize,
    /// Line number.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Number of characters.
    pub length: usize,
}

/// An error in a workload file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Position of the error.
    pub span: Span,
    /// Description of the error.
    pub message: String,
    /// How to correct it, if known.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Create a diagnostic without a hint.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), hint: None }
    }

    /// Return the diagnostic with this hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The errors of a workload, with the sources in which they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// Sources, by their index in [`Span`].
    pub sources: Vec<Source>,
    /// Errors in the order in which they were found, at most 100.
    pub found: Vec<Diagnostic>,
}

/// Maximum number of errors kept.
const MOST: usize = 100;
/// Maximum length of a message or a hint, in characters.
const LONGEST: usize = 1000;
/// Maximum number of characters shown of a source line.
const WIDEST: usize = 240;

impl Diagnostics {
    /// Return whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Add an error with a shortened message and hint. Identical errors and those after the first 100 are dropped.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        shorten(&mut diagnostic.message);
        diagnostic.hint.iter_mut().for_each(shorten);
        if self.found.len() < MOST && !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }
}

impl fmt::Display for Diagnostics {
    /// Write the errors sorted by position, each with its source line and carets below it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&Diagnostic> = self.found.iter().collect();
        sorted.sort_by_key(|one| (one.span.source, one.span.line, one.span.column));
        for (index, one) in sorted.into_iter().enumerate() {
            if index > 0 {
                formatter.write_char('\n')?;
            }
            self.write_one(formatter, one)?;
        }
        Ok(())
    }
}

impl Diagnostics {
    fn write_one(&self, formatter: &mut fmt::Formatter<'_>, one: &Diagnostic) -> fmt::Result {
        let Span { source, line, column, length } = one.span;
        let Some(source) = self.sources.get(source) else {
            return write!(formatter, "{}", one.message);
        };
        write!(formatter, "{}:{line}:{column}: {}", source.name, one.message)?;
        if let Some(hint) = &one.hint {
            write!(formatter, " ({hint})")?;
        }
        let shown = source.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        // Show only the part of a long line around the error.
        let before = column.saturating_sub(1);
        let left = before.saturating_sub(WIDEST / 2);
        let shown = shown.chars().skip(left).take(WIDEST);
        let shown: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
        let before = before - left;
        let room = shown.chars().count().saturating_sub(before).max(1);
        let carets = "^".repeat(length.clamp(1, room));
        write!(formatter, "\n    {shown}\n    {}{carets}", " ".repeat(before))
    }
}

/// Truncate a text to [`LONGEST`] characters, because a message can contain a word as long as the file.
fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
}

/// Return the known word with the smallest Levenshtein distance to `word`. Returns `None` if that distance exceeds
/// 1 plus a quarter of the length of `word`.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = known.into_iter().map(|one| (strsim::levenshtein(word, one), one)).min()?;
    (best.0 <= 1 + word.len() / 4).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_under_the_mistake() {
        let source = Source { name: "x.f".into(), text: "set $a=1\n\tflowop reed name=x\n".into() };
        let span = Span { source: 0, line: 2, column: 9, length: 4 };
        let mut all = Diagnostics { sources: vec![source], found: Vec::new() };
        all.push(Diagnostic::new(span, "unknown flowop 'reed'").hint("did you mean 'read'?"));
        let expected = "x.f:2:9: unknown flowop 'reed' (did you mean 'read'?)\n     flowop reed name=x\n            ^^^^";
        assert_eq!(all.to_string(), expected);
    }

    #[test]
    fn the_nearest_word_must_be_near() {
        assert_eq!(nearest("iosise", ["iosize", "iters"]), Some("iosize"));
        assert_eq!(nearest("frobnicate", ["iosize", "iters"]), None);
    }
}
