//! Compilation of custom random variables: `cvar`.

use std::sync::Arc;

use super::Compiler;
use super::evaluated::Scope;
use crate::ast::{At, Attribute};
use crate::diagnostic::{Diagnostic, Span};
use crate::random::{Distribution, Origin, Shape};

/// Custom distributions: name, and parameters with their defaults.
const CUSTOM: [(&str, &[(&str, f64)]); 8] = [
    ("erlang", &[("shape", 1.0), ("rate", 1.0)]),
    ("exponential", &[("mean", 1.0)]),
    ("gamma", &[("mean", 4096.0), ("gamma", 1.5)]),
    ("lognormal", &[("shape", 1.0), ("scale", 1.0)]),
    ("normal", &[("mean", 0.0), ("sigma", 1.0)]),
    ("triangular", &[("lower", 0.0), ("upper", 1.0), ("mode", 0.5)]),
    ("uniform", &[("lower", 0.0), ("upper", 1.0)]),
    ("weibull", &[("shape", 1.0), ("scale", 1.0)]),
];

impl Compiler {
    pub(super) fn custom_variable(&mut self, span: Span, said: &[Attribute]) -> Option<Arc<Distribution>> {
        let before = self.mistakes.found.len();
        let (mut kind, mut parameters) = (None, String::new());
        let (mut min, mut max, mut round) = (f64::NEG_INFINITY, f64::INFINITY, 0.0);
        for attribute in said {
            let Some(value) = &attribute.value else { continue };
            let scope = Scope::new();
            match attribute.name.it.as_str() {
                "type" => kind = self.text(value, &scope).map(|it| At { it, span: value.span }),
                "parameters" => parameters = self.text(value, &scope).unwrap_or_default(),
                "min" => min = self.fixed(value, "min", f64::MIN, &scope).unwrap_or(min),
                "max" => max = self.fixed(value, "max", f64::MIN, &scope).unwrap_or(max),
                _ => round = self.fixed(value, "round", 0.0, &scope).unwrap_or(round),
            }
        }
        let Some(kind) = kind else {
            self.mistake(span, "cvar needs a type");
            return None;
        };
        if min > max {
            self.mistake(span, "min is greater than max");
        }
        let shape = self.custom_shape(&kind, &parameters, span)?;
        if self.mistakes.found.len() > before {
            return None;
        }
        let number = self.distributions.len();
        Some(self.registered(Distribution { number, shape, min, max, round, seed: 0, origin: Origin::Seed }))
    }

    fn custom_shape(&mut self, kind: &At<String>, parameters: &str, span: Span) -> Option<Shape> {
        let short = kind.it.trim_start_matches("cvar-").trim_start_matches("rand-");
        let Some((_, defaults)) = CUSTOM.iter().find(|(name, _)| *name == short) else {
            let known: Vec<String> = CUSTOM.iter().map(|(name, _)| format!("cvar-{name}")).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            self.mistakes.push(crate::parse::unknown("type of cvar", kind, &known));
            return None;
        };
        let mut values: Vec<f64> = defaults.iter().map(|(_, default)| *default).collect();
        for pair in parameters.split(';').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once(':').unwrap_or((pair, ""));
            let position = defaults.iter().position(|(known, _)| *known == name.trim());
            match (position, value.trim().parse::<f64>()) {
                (Some(position), Ok(number)) if number.is_finite() => values[position] = number,
                (Some(_), _) => self.mistake(span, format!("'{name}' needs a number, not '{value}'")),
                (None, _) => {
                    let known: Vec<&str> = defaults.iter().map(|(known, _)| *known).collect();
                    let message = format!("unknown parameter '{name}' of cvar-{short}");
                    self.mistakes
                        .push(Diagnostic::new(span, message).hint(format!("known: {}", known.join(", "))));
                }
            }
        }
        let shape = shape_with(short, &values);
        if shape.is_none() {
            self.mistake(span, format!("cvar-{short} cannot have these parameters: {parameters}"));
        }
        shape
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie within 1..1000")]
fn shape_with(name: &str, values: &[f64]) -> Option<Shape> {
    let positive = |value: f64| (value > 0.0).then_some(value);
    Some(match (name, values) {
        ("erlang", &[order, rate]) if (1.0..1000.0).contains(&order) => {
            Shape::Erlang { order: order as u32, rate: positive(rate)? }
        }
        ("exponential", &[mean]) => Shape::Exponential { mean: positive(mean)? },
        ("gamma", &[mean, gamma]) => Shape::Gamma { lower: 0.0, mean, shape: positive(gamma)? },
        ("lognormal", &[shape, scale]) if shape >= 0.0 => Shape::Lognormal { shape, scale },
        ("normal", &[mean, sigma]) if sigma >= 0.0 => Shape::Normal { mean, sigma },
        ("triangular", &[lower, upper, mode]) if lower <= mode && mode <= upper => {
            Shape::Triangular { lower, upper, mode }
        }
        ("uniform", &[lower, upper]) if lower <= upper => Shape::Uniform { lower, upper },
        ("weibull", &[shape, scale]) => Shape::Weibull { shape: positive(shape)?, scale: positive(scale)? },
        _ => return None,
    })
}
