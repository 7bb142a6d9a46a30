//! Scanner from text to tokens. Invalid tokens are recorded as errors with their position and skipped.

mod pieces;

use super::ast::{Name, Piece};
use super::diagnostic::{Diagnostic, Diagnostics, Span};

/// The kind and value of a token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A word of ASCII letters, digits and `/ . _ : ; - ~ @` that is not a number.
    Word(String),
    /// An integer multiplied by its suffix, and whether it starts with a minus sign.
    Integer(i64, bool),
    /// A number with a decimal point multiplied by its suffix, and whether it starts with a minus sign.
    Float(f64, bool),
    /// A variable, such as `$name`.
    Variable(Name),
    /// A quoted text.
    Quoted(Vec<Piece>),
    /// One of `{ } ( ) = , + * %`.
    Symbol(char),
    /// The end of the text.
    End,
}

/// A token with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether it is the first token of its line.
    pub(crate) starts_line: bool,
}

/// Attributes of a random variable that can be used as `$name.attribute`.
pub(crate) const RANDOM_ATTRIBUTES: [&str; 9] =
    ["type", "seed", "gamma", "mean", "min", "max", "round", "randsrc", "randtable"];

/// Return the tokens of the source with index `source`; the last one is [`Kind::End`]. Adds errors to `mistakes`.
pub(crate) fn scan(text: &str, source: usize, mistakes: &mut Diagnostics) -> Vec<Token> {
    let mut scanner =
        Scanner { text: text.chars().collect(), at: 0, line: 1, column: 1, source, fresh: true };
    let mut tokens = Vec::new();
    loop {
        scanner.skip_blank();
        let (begin, starts_line) = (scanner.span(), scanner.fresh);
        scanner.fresh = false;
        let start = scanner.at;
        match scanner.token() {
            Ok(kind) => {
                let length = if scanner.line == begin.line { scanner.at - start } else { 1 };
                let end = kind == Kind::End;
                tokens.push(Token { kind, span: Span { length: length.max(1), ..begin }, starts_line });
                if end {
                    return tokens;
                }
            }
            Err(message) => {
                let length = if scanner.line == begin.line { (scanner.at - start).max(1) } else { 1 };
                mistakes.push(Diagnostic::new(Span { length, ..begin }, message));
            }
        }
    }
}

struct Scanner {
    text: Vec<char>,
    at: usize,
    line: usize,
    column: usize,
    source: usize,
    fresh: bool,
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._:;-~@".contains(c)
}

impl Scanner {
    fn span(&self) -> Span {
        Span { source: self.source, line: self.line, column: self.column, length: 1 }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn after(&self, distance: usize) -> Option<char> {
        self.text.get(self.at + distance).copied()
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
            self.fresh = true;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    /// Skip white space, comments, line continuations and byte order marks.
    fn skip_blank(&mut self) {
        while let Some(c) = self.peek() {
            let continues = c == '\\' && matches!(self.after(1), Some('\n' | '\r'));
            if c == '#' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.advance();
                }
            } else if c.is_whitespace() || continues || c == '\u{feff}' {
                self.advance();
            } else {
                return;
            }
        }
    }

    fn token(&mut self) -> Result<Kind, String> {
        let Some(c) = self.peek() else { return Ok(Kind::End) };
        let digit_next = self.after(1).is_some_and(|next| next.is_ascii_digit());
        match c {
            '{' | '}' | '(' | ')' | '=' | ',' | '+' | '*' | '%' => {
                self.advance();
                Ok(Kind::Symbol(c))
            }
            '"' => self.quoted(),
            '$' => self.variable().map(Kind::Variable),
            _ if c.is_ascii_digit() || (c == '-' && digit_next) => self.number_or_word(),
            _ if in_word(c) => Ok(Kind::Word(self.take_while(in_word))),
            _ => {
                self.advance();
                Err(format!("'{}' is not expected here", c.escape_debug()))
            }
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek().filter(|&c| wanted(c)) {
            taken.push(c);
            self.advance();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut mistakes = Diagnostics::default();
        let found = scan(text, 0, &mut mistakes).into_iter().map(|token| token.kind).collect();
        assert!(mistakes.is_empty(), "{mistakes:?}");
        found
    }

    #[test]
    fn numbers_have_suffixes_and_words_may_begin_with_digits() {
        let expected = [
            Kind::Integer(16 << 10, false),
            Kind::Integer(-3, true),
            Kind::Float(1.5, false),
            Kind::Integer(100 << 20, false),
            Kind::Word("5streams".into()),
            Kind::Word("mean:16384;gamma:1.5".into()),
            Kind::Word("/tmp/a-b".into()),
            Kind::End,
        ];
        assert_eq!(kinds("16k -3 1.5 100mb 5streams mean:16384;gamma:1.5 /tmp/a-b # gone"), expected);
    }

    #[test]
    fn variables_in_and_out_of_quotes() {
        let found = kinds("$a $x.mean \"is $a \\$b\\n\" ${date} $(HOME)");
        let text = vec![
            Piece::Literal("is ".into()),
            Piece::Variable(Name::Plain("a".into())),
            Piece::Literal(" $b\n".into()),
        ];
        assert_eq!(found[0], Kind::Variable(Name::Plain("a".into())));
        assert_eq!(found[1], Kind::Variable(Name::Attribute("x".into(), "mean".into())));
        assert_eq!(found[2], Kind::Quoted(text));
        assert_eq!(found[3], Kind::Variable(Name::Internal("date".into())));
        assert_eq!(found[4], Kind::Variable(Name::Environment("HOME".into())));
    }

    #[test]
    fn what_is_no_token_is_told_and_the_rest_is_read() {
        let mut mistakes = Diagnostics::default();
        let tokens = scan("set ? $a=99999999999999t\n \"open", 0, &mut mistakes);
        let places: Vec<_> = mistakes.found.iter().map(|one| (one.span.line, one.span.column)).collect();
        assert_eq!(places, [(1, 5), (1, 10), (2, 2)]);
        assert_eq!(tokens.len(), 4); // set, $a, =, end
    }
}
