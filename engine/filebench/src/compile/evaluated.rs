//! Values of evaluated expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::random::Distribution;

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Evaluated {
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Boolean(bool),
    /// A text.
    Text(String),
    /// A random variable.
    Random(Arc<Distribution>),
}

impl fmt::Display for Evaluated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(formatter, "{value}"),
            Self::Float(value) => write!(formatter, "{value}"),
            Self::Boolean(value) => write!(formatter, "{value}"),
            Self::Text(value) => write!(formatter, "{value}"),
            Self::Random(one) => write!(formatter, "random variable with mean {}", one.shape.mean()),
        }
    }
}

impl Evaluated {
    /// Return the kind of the value, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Text(_) => "a text",
            Self::Random(_) => "a random variable",
        }
    }
}

/// The variables of the innermost enclosing composite flowop; `None` for a variable without a value.
pub(super) type Scope = BTreeMap<String, Option<Evaluated>>;
