//! Scanner for tokens that consist of parts: numbers with suffixes, variables and quoted texts.

use super::{Kind, RANDOM_ATTRIBUTES, Scanner, in_word};
use crate::ast::{Name, Piece};

impl Scanner {
    /// Scan a number with an optional suffix, or a word that starts with a digit.
    pub(super) fn number_or_word(&mut self) -> Result<Kind, String> {
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
            return Err(format!("'{text}' is not a number: '{suffix}' is not one of k, m, g, t"));
        };
        let sign = if negative { -1 } else { 1 };
        if digits.contains('.') {
            let number: f64 = digits.parse().map_err(|_| format!("'{text}' is not a number"))?;
            return Ok(Kind::Float(number * factor as f64 * f64::from(sign), negative));
        }
        let number = digits.parse::<i64>().ok().and_then(|number| number.checked_mul(factor));
        let number = number.ok_or_else(|| format!("'{text}' is too large"))?;
        Ok(Kind::Integer(number * i64::from(sign), negative))
    }

    pub(super) fn variable(&mut self) -> Result<Name, String> {
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

    pub(super) fn quoted(&mut self) -> Result<Kind, String> {
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

/// Return the factor of a size suffix, a power of 1024; `None` for an unknown suffix. Case is ignored.
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
