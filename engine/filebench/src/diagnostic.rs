//! Mistakes in a workload file: what is wrong, where, and what would be right. Nothing is printed here.
//!
//! Written by hand: annotate-snippets takes more lines to be told what is shown, and shows a mistake in six where
//! three are enough and programs look for `file:line:column: message`.

use std::fmt::{self, Write};

/// A text that commands come from: the workload file, a personality that it loads, a `--set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// How it is called in messages.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// A place in a source. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The number of the source.
    pub source: usize,
    /// The line.
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// How many characters.
    pub length: usize,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do, if there is something to say.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A mistake without a hint.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// All mistakes of a workload, with the texts that they are in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// The texts.
    pub sources: Vec<Source>,
    /// The mistakes, in the order in which they were found.
    pub found: Vec<Diagnostic>,
}

/// How many mistakes are told.
const MOST: usize = 100;
/// How many characters a message or a hint may have.
const LONGEST: usize = 1000;
/// How many characters of a line are shown.
const WIDEST: usize = 240;

impl Diagnostics {
    /// Whether there is no mistake.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Adds one, unless the very same was found before, or there are more than are printed.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        shorten(&mut diagnostic.message);
        diagnostic.hint.iter_mut().for_each(shorten);
        if self.found.len() < MOST && !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }
}

impl fmt::Display for Diagnostics {
    /// Each mistake with its line, and a caret under it.
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
        // Of a long line what stands around the mistake.
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

/// Cuts off what is longer than anyone reads: a word of the file may be as long as the file.
fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
}

/// The one of `known` that is most like `word`, if any is like it at all.
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
