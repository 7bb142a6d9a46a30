//! Evaluation of variables and expressions.

use super::Compiler;
use super::evaluated::{Evaluated, Scope};
use crate::ast::{At, Name, Operator, Piece, Value};
use crate::diagnostic::{Span, nearest};
use crate::parse::shown;
use crate::random::Number;

/// Maximum total size of all texts in bytes.
const MOST_TEXT: usize = 64 << 20;

impl Compiler {
    /// Evaluate an expression. Returns `None` after an error, which is recorded.
    pub(super) fn evaluate(&mut self, value: &At<Value>, scope: &Scope) -> Option<Evaluated> {
        match &value.it {
            Value::Integer(number) => Some(Evaluated::Integer(*number)),
            Value::Float(number) => Some(Evaluated::Float(*number)),
            Value::Boolean(yes) => Some(Evaluated::Boolean(*yes)),
            Value::Text(pieces) => {
                let text = self.text_of(pieces, scope);
                (!self.is_too_much_text(value.span)).then_some(Evaluated::Text(text))
            }
            Value::Variable(name) => self.look_up(name, value.span, scope),
            Value::Binary(left, operator, right) => {
                let (left, right) = (self.evaluate(left, scope), self.evaluate(right, scope));
                self.combine(value.span, &left?, *operator, &right?)
            }
            Value::Random(attributes) => self.random_variable(value.span, attributes).map(Evaluated::Random),
            Value::Custom(attributes) => self.custom_variable(value.span, attributes).map(Evaluated::Random),
            Value::Table(_) => {
                self.mistake(value.span, "a table belongs to 'randtable'");
                None
            }
        }
    }

    /// Expand the variables in a text. References to unset variables stay unchanged. The text is cut off when all texts
    /// together exceed [`MOST_TEXT`].
    pub(super) fn text_of(&mut self, pieces: &[Piece], scope: &Scope) -> String {
        let mut text = String::new();
        for piece in pieces {
            if self.text_bytes + text.len() > MOST_TEXT {
                break;
            }
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Variable(name) => match self.known(name, scope) {
                    Some(value) => text.push_str(&value.to_string()),
                    None => text.push_str(&shown(name)),
                },
            }
        }
        self.text_bytes += text.len();
        text
    }

    /// Return whether all texts together exceed [`MOST_TEXT`], and record that as an error. Without this limit,
    /// repeating `set $a="$a$a"` would use up the memory.
    pub(super) fn is_too_much_text(&mut self, span: Span) -> bool {
        let too_much = self.text_bytes > MOST_TEXT;
        if too_much {
            self.mistake(span, "texts add up to more than 64 MiB");
        }
        too_much
    }

    fn look_up(&mut self, name: &Name, span: Span, scope: &Scope) -> Option<Evaluated> {
        let found = self.known(name, scope);
        if found.is_none() {
            let message = format!("{} is not set", shown(name));
            let known: Vec<String> = self.variables.keys().chain(scope.keys()).cloned().collect();
            let near = match name {
                Name::Plain(name) => nearest(name, known.iter().map(String::as_str)),
                _ => None,
            };
            match near {
                Some(near) => self.mistake_with_hint(span, message, format!("did you mean '${near}'?")),
                None => self.mistake(span, message),
            }
        }
        found
    }

    fn known(&mut self, name: &Name, scope: &Scope) -> Option<Evaluated> {
        match name {
            Name::Plain(name) => {
                if let Some(local) = scope.get(name) {
                    return local.clone();
                }
                self.mentioned.insert(name.clone());
                self.variables.get(name).cloned()
            }
            Name::Attribute(name, attribute) => {
                self.mentioned.insert(name.clone());
                let Some(Evaluated::Random(one)) = self.variables.get(name) else { return None };
                super::distributions::attribute(one, attribute)
            }
            Name::Environment(name) => std::env::var(name).ok().map(Evaluated::Text),
            Name::Internal(name) => self.internal(name),
        }
    }

    fn internal(&mut self, name: &str) -> Option<Evaluated> {
        match name {
            "rate" | "eventgen.rate" => {
                // Remove the rate during the evaluation, so that a rate that refers to itself is unset.
                let rate = self.rate.take()?;
                let value = self.evaluate(&rate, &Scope::new());
                self.rate = Some(rate);
                value
            }
            "scriptname" | "script" => {
                self.mistakes.sources.first().map(|source| Evaluated::Text(source.name.clone()))
            }
            "hostname" => {
                let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
                Some(Evaluated::Text(name.trim_end().to_owned()))
            }
            "date" => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
                Some(Evaluated::Integer(i64::try_from(now.as_secs()).unwrap_or(i64::MAX)))
            }
            other => {
                let plain = Name::Plain(other.to_owned());
                self.known(&plain, &Scope::new())
            }
        }
    }

    fn combine(
        &mut self,
        span: Span,
        left: &Evaluated,
        operator: Operator,
        right: &Evaluated,
    ) -> Option<Evaluated> {
        if let (Evaluated::Integer(left), Evaluated::Integer(right)) = (left, right) {
            let result = match operator {
                Operator::Plus => left.checked_add(*right),
                Operator::Minus => left.checked_sub(*right),
                Operator::Times => left.checked_mul(*right),
                Operator::Divide => left.checked_div(*right),
                Operator::Remainder => left.checked_rem(*right),
            };
            if result.is_none() {
                let divided = matches!(operator, Operator::Divide | Operator::Remainder) && *right == 0;
                self.mistake(span, if divided { "division by zero" } else { "the result is too large" });
            }
            return result.map(Evaluated::Integer);
        }
        let (Some(left), Some(right)) = (float(left), float(right)) else {
            let message = format!("{} and {} cannot be combined", left.kind(), right.kind());
            self.mistake(span, message);
            return None;
        };
        let result = match operator {
            Operator::Plus => left + right,
            Operator::Minus => left - right,
            Operator::Times => left * right,
            Operator::Divide => left / right,
            Operator::Remainder => left % right,
        };
        if !result.is_finite() {
            let by_zero = matches!(operator, Operator::Divide | Operator::Remainder) && right == 0.0;
            self.mistake(span, if by_zero { "division by zero" } else { "the result is too large" });
            return None;
        }
        Some(Evaluated::Float(result))
    }

    /// Evaluate a fixed number or a random variable. True and false are 1 and 0. Returns `None` after an error, which
    /// is recorded.
    pub(super) fn number(&mut self, value: &At<Value>, scope: &Scope) -> Option<Number> {
        let evaluated = self.evaluate(value, scope)?;
        if let Evaluated::Random(one) = evaluated {
            return Some(Number::Random(one));
        }
        let found = float(&evaluated).or(match evaluated {
            Evaluated::Boolean(yes) => Some(f64::from(u8::from(yes))),
            _ => None,
        });
        if found.is_none() {
            self.mistake(value.span, format!("expected a number, found {}", described(&evaluated)));
        }
        found.map(Number::Fixed)
    }

    /// Evaluate a fixed number of at least `least`. Returns `None` after an error, which is recorded and contains
    /// `what`.
    pub(super) fn fixed(&mut self, value: &At<Value>, what: &str, least: f64, scope: &Scope) -> Option<f64> {
        match self.number(value, scope)? {
            Number::Fixed(number) if number >= least => Some(number),
            Number::Fixed(number) => {
                self.mistake(value.span, format!("{what} must be at least {least}, not {number}"));
                None
            }
            Number::Random(_) => {
                self.mistake(value.span, format!("{what} cannot be random"));
                None
            }
        }
    }

    /// Evaluate a truth value; an integer is true unless it is 0. Returns `None` after an error, which is recorded.
    pub(super) fn truth(&mut self, value: &At<Value>, scope: &Scope) -> Option<bool> {
        match self.evaluate(value, scope)? {
            Evaluated::Boolean(yes) => Some(yes),
            Evaluated::Integer(number) => Some(number != 0),
            other => {
                self.mistake(value.span, format!("expected true or false, found {}", described(&other)));
                None
            }
        }
    }

    /// Evaluate a text; a number or truth value is converted to text. Returns `None` after an error, which is recorded.
    pub(super) fn text(&mut self, value: &At<Value>, scope: &Scope) -> Option<String> {
        match self.evaluate(value, scope)? {
            Evaluated::Random(_) => {
                self.mistake(value.span, "expected a text, found a random variable");
                None
            }
            other => Some(other.to_string()),
        }
    }
}

fn float(value: &Evaluated) -> Option<f64> {
    match value {
        Evaluated::Integer(number) => Some(*number as f64),
        Evaluated::Float(number) => Some(*number),
        _ => None,
    }
}

fn described(value: &Evaluated) -> String {
    match value {
        Evaluated::Text(text) => format!("the text '{text}'"),
        other => other.kind().to_owned(),
    }
}
