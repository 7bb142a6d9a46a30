//! Text to tokens. What is no token at all is a mistake with its place, and the rest goes on.

use super::ast::{Name, Piece};
use super::diagnostic::{Diagnostic, Diagnostics, Span};

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// Letters, digits and `/ . _ : ; - ~ @`, not beginning like a number.
    Word(String),
    /// A whole number with its suffix applied; whether it began with a minus.
    Integer(i64, bool),
    /// A number with a decimal point; whether it began with a minus.
    Float(f64, bool),
    /// `$name`.
    Variable(Name),
    /// A text in quotes.
    Quoted(Vec<Piece>),
    /// One of `{ } ( ) = , + * %`.
    Symbol(char),
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether nothing but white space stands before it on its line.
    pub(crate) starts_line: bool,
}

/// Attributes of a random variable that may follow its name and a dot.
pub(crate) const RANDOM_ATTRIBUTES: [&str; 9] =
    ["type", "seed", "gamma", "mean", "min", "max", "round", "randsrc", "randtable"];

/// All tokens of source number `source`; the last one is [`Kind::End`].
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

    /// Passes white space, comments and line continuations.
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
                Err(format!("'{}' means nothing here", c.escape_debug()))
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

    /// A number with its suffix, or a word that happens to begin with a digit.
    fn number_or_word(&mut self) -> Result<Kind, String> {
        let negative = self.peek() == Some('-');
        if negative {
            self.advance();
        }
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || "._:;@~".contains(c));
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = &text[digits.len()..];
        let is_word = !digits.chars().all(|c| c.is_ascii_digit() || c == '.')
            || digits.matches('.').count() > 1
            || digits.ends_with('.')
            || factor(suffix).is_none() && suffix.len() > 3;
        if is_word {
            let rest = self.take_while(in_word);
            return Ok(Kind::Word(format!("{}{text}{rest}", if negative { "-" } else { "" })));
        }
        let Some(factor) = factor(suffix) else {
            return Err(format!("'{text}' is no number: '{suffix}' is not one of k, m, g, t"));
        };
        let sign = if negative { -1 } else { 1 };
        if digits.contains('.') {
            let number: f64 = digits.parse().map_err(|_| format!("'{text}' is no number"))?;
            return Ok(Kind::Float(number * factor as f64 * f64::from(sign), negative));
        }
        let number = digits.parse::<i64>().ok().and_then(|number| number.checked_mul(factor));
        let number = number.ok_or_else(|| format!("'{text}' is too large"))?;
        Ok(Kind::Integer(number * i64::from(sign), negative))
    }

    fn variable(&mut self) -> Result<Name, String> {
        self.advance();
        for (open, close) in [('(', ')'), ('{', '}')] {
            if self.peek() == Some(open) {
                self.advance();
                let name = self.take_while(|c| c != close && c != '\n' && c != '"');
                if self.advance() != Some(close) {
                    return Err(format!("'{close}' is missing after '${open}{name}'"));
                }
                return Ok(if open == '(' { Name::Environment(name) } else { Name::Internal(name) });
            }
        }
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err("a name is missing after '$'".into());
        }
        if self.peek() == Some('.') {
            let word: String =
                self.text[self.at + 1..].iter().take_while(|c| c.is_ascii_alphanumeric()).collect();
            if RANDOM_ATTRIBUTES.contains(&word.as_str()) {
                for _ in 0..=word.len() {
                    self.advance();
                }
                return Ok(Name::Attribute(name, word));
            }
        }
        Ok(Name::Plain(name))
    }

    fn quoted(&mut self) -> Result<Kind, String> {
        self.advance();
        let (mut pieces, mut literal) = (Vec::new(), String::new());
        loop {
            match self.peek() {
                None => return Err("the quote is never closed".into()),
                Some('"') => {
                    self.advance();
                    break;
                }
                Some('\\') => {
                    self.advance();
                    literal.push(match self.advance() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(other) => other,
                        None => return Err("the quote is never closed".into()),
                    });
                }
                Some('$')
                    if self.after(1).is_some_and(|c| c.is_ascii_alphanumeric() || "_({".contains(c)) =>
                {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Variable(self.variable()?));
                }
                Some(c) => {
                    literal.push(c);
                    self.advance();
                }
            }
        }
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Kind::Quoted(pieces))
    }
}

/// What a suffix multiplies by: powers of 1024.
fn factor(suffix: &str) -> Option<i64> {
    Some(match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    })
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
        assert_eq!(tokens.len(), 4); // set, $a, =, the end
    }
}
