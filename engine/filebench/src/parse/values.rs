//! Parser for values: numbers, words, texts, variables, expressions, random variables and their tables.

use super::{MOST_OPERATORS, Parsed, Parser};
use crate::ast::{At, Attribute, Name, Operator, Piece, Value};
use crate::diagnostic::Diagnostic;
use crate::scan::{Kind, Token};
use crate::words;

impl Parser<'_> {
    /// Parse a value, which may be an expression.
    pub(super) fn value(&mut self) -> Parsed<At<Value>> {
        let around = std::mem::take(&mut self.operators);
        let value = self.nested(Self::sum);
        self.operators = around;
        value
    }

    fn sum(&mut self) -> Parsed<At<Value>> {
        let mut left = self.product()?;
        loop {
            let operator = match self.operator() {
                Some('+') => Operator::Plus,
                Some('-') => Operator::Minus,
                _ => return Ok(left),
            };
            self.pass_operator()?;
            let right = self.product()?;
            left = combined(left, operator, right);
        }
    }

    fn product(&mut self) -> Parsed<At<Value>> {
        let mut left = self.operand()?;
        loop {
            let operator = match self.operator() {
                Some('*') => Operator::Times,
                Some('/') => Operator::Divide,
                Some('%') => Operator::Remainder,
                _ => return Ok(left),
            };
            self.pass_operator()?;
            let right = self.operand()?;
            left = combined(left, operator, right);
        }
    }

    /// Return the operator at the current token, if there is one. After an operand, a minus sign or slash at the start
    /// of a number or word is also an operator: `$n/2`, `$n -1`.
    fn operator(&self) -> Option<char> {
        match self.kind() {
            Kind::Symbol(symbol) if "+*%".contains(*symbol) => Some(*symbol),
            Kind::Integer(_, true) | Kind::Float(_, true) => Some('-'),
            Kind::Word(word) => word.chars().next().filter(|c| "/-".contains(*c)),
            _ => None,
        }
    }

    /// Consume an operator. If it is the start of a longer token, the rest stays as the current token. Fails after
    /// [`MOST_OPERATORS`] operators.
    fn pass_operator(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            return self.fail(Diagnostic::new(
                self.span(),
                format!("more than {MOST_OPERATORS} operators in a value"),
            ));
        }
        let at = self.at;
        let Token { kind, span, .. } = &mut self.tokens[at];
        let rest = match kind {
            Kind::Integer(number, _) => Some(Kind::Integer(number.wrapping_neg(), false)),
            Kind::Float(number, _) => Some(Kind::Float(-*number, false)),
            Kind::Word(word) => match &word[1..] {
                "" => None,
                rest => Some(
                    rest.parse()
                        .map_or_else(|_| Kind::Word(rest.to_owned()), |number| Kind::Integer(number, false)),
                ),
            },
            _ => None,
        };
        match rest {
            None => self.advance(),
            Some(rest) => {
                *kind = rest;
                span.column += 1;
                span.length = span.length.saturating_sub(1).max(1);
            }
        }
        Ok(())
    }

    fn operand(&mut self) -> Parsed<At<Value>> {
        let span = self.span();
        let it = match self.kind().clone() {
            Kind::Integer(number, _) => Value::Integer(number),
            Kind::Float(number, _) => Value::Float(number),
            Kind::Quoted(pieces) => Value::Text(pieces),
            Kind::Variable(name) => Value::Variable(name),
            Kind::Symbol('(') => {
                self.advance();
                let inner = self.nested(Self::sum)?;
                self.symbol(')')?;
                return Ok(inner);
            }
            Kind::Word(_) if self.token().starts_line && self.command_begins() => {
                return self.expected("a value");
            }
            Kind::Word(word) => return self.word_value(&word),
            _ => return self.expected("a value"),
        };
        self.advance();
        Ok(At { it, span })
    }

    fn word_value(&mut self, word: &str) -> Parsed<At<Value>> {
        let span = self.span();
        self.advance();
        let it = match word {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            "randvar" if self.is_symbol('(') => Value::Random(self.in_parentheses(&words::RANDOM)?),
            "cvar" if self.is_symbol('(') => Value::Custom(self.in_parentheses(&words::CUSTOM)?),
            _ => Value::Text(vec![Piece::Literal(word.to_owned())]),
        };
        Ok(At { it, span })
    }

    fn in_parentheses(&mut self, entity: &words::Entity) -> Parsed<Vec<Attribute>> {
        self.symbol('(')?;
        let (attributes, _) = self.attributes(entity, false)?;
        self.symbol(')')?;
        Ok(attributes)
    }

    /// Parse a number, a variable or an expression that starts with one of them or with a parenthesis.
    pub(super) fn number(&mut self) -> Parsed<At<Value>> {
        match self.kind() {
            Kind::Integer(..) | Kind::Float(..) | Kind::Variable(_) | Kind::Symbol('(') => self.value(),
            _ => self.expected("a number or a variable"),
        }
    }

    /// Parse a quoted text, a single word or a variable.
    pub(super) fn text(&mut self) -> Parsed<At<Value>> {
        let span = self.span();
        match self.kind().clone() {
            Kind::Quoted(pieces) => {
                self.advance();
                Ok(At { it: Value::Text(pieces), span })
            }
            Kind::Variable(name) => {
                self.advance();
                Ok(At { it: Value::Text(vec![Piece::Variable(name)]), span })
            }
            Kind::Word(word) if !self.command_begins() => {
                self.advance();
                Ok(At { it: Value::Text(vec![Piece::Literal(word)]), span })
            }
            _ => self.expected("a text in quotes"),
        }
    }

    /// Parse `name=value, name, …` with the attributes of `entity` and, if `locals` is set, also `$name` and
    /// `$name=value`. Returns the attributes and the variables.
    #[expect(clippy::type_complexity, reason = "two lists, one after the other")]
    pub(super) fn attributes(
        &mut self,
        entity: &words::Entity,
        locals: bool,
    ) -> Parsed<(Vec<Attribute>, Vec<(At<String>, Option<At<Value>>)>)> {
        let (mut attributes, mut variables) = (Vec::new(), Vec::new());
        loop {
            if locals && matches!(self.kind(), Kind::Variable(_)) {
                let name = self.plain_variable()?;
                let value = if self.accept_symbol('=') { Some(self.value()?) } else { None };
                variables.push((name, value));
            } else {
                attributes.push(self.attribute(entity)?);
            }
            if !self.accept_symbol(',') {
                return Ok((attributes, variables));
            }
        }
    }

    fn attribute(&mut self, entity: &words::Entity) -> Parsed<Attribute> {
        let mut name = self.word("an attribute")?;
        let Some(canonical) = entity.find(&name.it) else {
            let known: Vec<&str> = entity.attributes.iter().map(|(name, _)| *name).collect();
            let mut diagnostic = super::unknown("attribute", &name, &known);
            diagnostic.message = format!("{} of {}", diagnostic.message, entity.name);
            return self.fail(diagnostic);
        };
        canonical.clone_into(&mut name.it);
        let value = if !self.accept_symbol('=') {
            None
        } else if name.it == "randtable" {
            let span = self.span();
            Some(At { it: Value::Table(self.table()?), span })
        } else {
            Some(self.value()?)
        };
        Ok(Attribute { name, value })
    }

    /// Parse `{{percentage, from, to}, …}`.
    pub(super) fn table(&mut self) -> Parsed<Vec<[At<Value>; 3]>> {
        self.symbol('{')?;
        let mut rows = Vec::new();
        loop {
            self.symbol('{')?;
            let percentage = self.number()?;
            self.symbol(',')?;
            let from = self.number()?;
            self.symbol(',')?;
            let to = self.number()?;
            self.symbol('}')?;
            rows.push([percentage, from, to]);
            if !self.accept_symbol(',') {
                break;
            }
        }
        self.symbol('}')?;
        Ok(rows)
    }

    /// Parse the value of `set $name = value` or `set $name.attribute = value`. Fails for other forms of names.
    pub(super) fn value_of_attribute(&mut self, name: &Name) -> Parsed<At<Value>> {
        let span = self.span();
        if matches!(name, Name::Attribute(_, attribute) if attribute == "randtable") {
            return Ok(At { it: Value::Table(self.table()?), span });
        }
        if matches!(name, Name::Environment(_) | Name::Internal(_)) {
            return self.fail(Diagnostic::new(span, "only variables of the form $name can be set"));
        }
        self.value()
    }
}

fn combined(left: At<Value>, operator: Operator, right: At<Value>) -> At<Value> {
    let span = left.span;
    At { it: Value::Binary(Box::new(left), operator, Box::new(right)), span }
}
