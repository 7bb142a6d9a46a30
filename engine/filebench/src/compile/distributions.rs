//! Compilation of random variables: `randvar`, `define randvar` and `set $x.mean`.

use std::sync::Arc;

use super::Compiler;
use super::evaluated::{Evaluated, Scope};
use crate::ast::{At, Attribute, Name, Value};
use crate::diagnostic::Span;
use crate::random::{Distribution, Origin, Shape};

/// The given attributes of a random variable.
#[derive(Debug, Default)]
struct Said {
    kind: Option<String>,
    seed: Option<f64>,
    gamma: Option<f64>,
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    round: Option<f64>,
    origin: Origin,
    table: Option<Vec<(f64, f64, f64)>>,
}

impl Compiler {
    pub(super) fn random_variable(&mut self, span: Span, said: &[Attribute]) -> Option<Arc<Distribution>> {
        let before = self.mistakes.found.len();
        let mut what = Said::default();
        for attribute in said {
            self.hear(&mut what, attribute);
        }
        if self.mistakes.found.len() > before {
            return None;
        }
        let shape = self.shape_of(span, &what)?;
        let distribution = Distribution {
            number: self.distributions.len(),
            shape,
            min: f64::NEG_INFINITY,
            max: what.max.unwrap_or(f64::INFINITY),
            round: what.round.unwrap_or(0.0),
            seed: bits(what.seed.unwrap_or(0.0)),
            origin: what.origin,
        };
        Some(self.registered(distribution))
    }

    pub(super) fn registered(&mut self, distribution: Distribution) -> Arc<Distribution> {
        let distribution = Arc::new(distribution);
        self.distributions.push(Arc::clone(&distribution));
        distribution
    }

    fn hear(&mut self, said: &mut Said, attribute: &Attribute) {
        let name = attribute.name.it.as_str();
        let Some(value) = &attribute.value else {
            if name != "name" {
                self.mistake(attribute.name.span, format!("'{name}' needs a value"));
            }
            return;
        };
        let scope = Scope::new();
        match name {
            "name" => {}
            "type" => said.kind = self.text(value, &scope),
            "randsrc" => match self.text(value, &scope).as_deref() {
                Some("urandom") => said.origin = Origin::Kernel,
                Some("rand48") => said.origin = Origin::Seed,
                Some(_) => self.mistake(value.span, "randsrc is 'urandom' or 'rand48'"),
                None => {}
            },
            "randtable" => said.table = self.table(value),
            _ => {
                let least = if name == "seed" || name == "mean" { f64::MIN } else { 0.0 };
                let number = self.fixed(value, name, least, &scope);
                match name {
                    "seed" => said.seed = number,
                    "gamma" => said.gamma = number,
                    "mean" => said.mean = number,
                    "min" => said.min = number,
                    "max" => said.max = number,
                    _ => said.round = number,
                }
            }
        }
    }

    fn table(&mut self, value: &At<Value>) -> Option<Vec<(f64, f64, f64)>> {
        let Value::Table(rows) = &value.it else {
            self.mistake(value.span, "randtable is {{percentage, from, to}, …}");
            return None;
        };
        let mut table = Vec::new();
        for [percentage, from, to] in rows {
            let scope = Scope::new();
            let mut number = |one| self.fixed(one, "a number of a randtable", 0.0, &scope);
            let (percentage, from, to) = (number(percentage), number(from), number(to));
            table.push((percentage? / 100.0, from?, to?));
        }
        let total: f64 = table.iter().map(|row| row.0).sum();
        if (total - 1.0).abs() > 1e-6 {
            self.mistake(value.span, format!("the percentages add up to {:.0}, not 100", total * 100.0));
            return None;
        }
        Some(table)
    }

    fn shape_of(&mut self, span: Span, said: &Said) -> Option<Shape> {
        let min = said.min.unwrap_or(0.0);
        if let Some(table) = &said.table {
            return Some(Shape::Table(scaled(table, min, said.mean)));
        }
        let gamma = said.gamma.unwrap_or(1500.0) / 1000.0;
        match said.kind.as_deref() {
            Some("uniform") => {
                // With `max` and without `mean`, the upper bound is `max`; otherwise it follows from the mean.
                let upper = match (said.mean, said.max) {
                    (None, Some(max)) => max.max(min),
                    (mean, _) => min + 2.0 * (mean.unwrap_or(0.0).max(min) - min),
                };
                Some(Shape::Uniform { lower: min, upper })
            }
            None | Some("gamma") => {
                if gamma <= 0.0 {
                    self.mistake(span, "gamma must be greater than 0");
                    return None;
                }
                Some(Shape::Gamma { lower: min, mean: said.mean.unwrap_or(gamma).max(min), shape: gamma })
            }
            Some("tabular" | "table") => {
                self.mistake(span, "a tabular random variable needs a randtable");
                None
            }
            Some(other) => {
                let message = format!("unknown type '{other}'");
                self.mistake_with_hint(span, message, "known: uniform, gamma, tabular");
                None
            }
        }
    }

    /// Execute `set $x.mean = …` or the same with another attribute: replace the variable by a new one in which this
    /// attribute is changed.
    pub(super) fn change_random(
        &mut self,
        name: &At<Name>,
        variable: &str,
        attribute: &str,
        value: &At<Value>,
    ) {
        let Some(Evaluated::Random(old)) = self.variables.get(variable).cloned() else {
            let message = format!("${variable} is not a random variable");
            return self.mistake_with_hint(name.span, message, "make it one with 'define randvar'");
        };
        let at = |it: &str| At { it: it.to_owned(), span: name.span };
        let mut said = known_attributes(&old, name.span);
        said.retain(|one| one.name.it != attribute && !(attribute == "type" && one.name.it == "randtable"));
        said.push(Attribute { name: at(attribute), value: Some(value.clone()) });
        if let Some(new) = self.random_variable(value.span, &said) {
            self.variables.insert(variable.to_owned(), Evaluated::Random(new));
        }
    }
}

/// Shift and scale a table so that its minimum is `min` and its mean is `mean`. Without `mean`, the mean is kept.
fn scaled(table: &[(f64, f64, f64)], min: f64, mean: Option<f64>) -> Vec<(f64, f64, f64)> {
    let least = table.iter().map(|row| row.1.min(row.2)).fold(f64::INFINITY, f64::min);
    let own: f64 = table.iter().map(|row| row.0 * f64::midpoint(row.1, row.2)).sum();
    let wanted = mean.filter(|mean| *mean > 0.0).unwrap_or(own);
    let factor = if own > least { (wanted - min) / (own - least) } else { 0.0 };
    let place = |value: f64| (value - least) * factor + min;
    let row = |row: &(f64, f64, f64)| (row.0, place(row.1), place(row.2));
    if own > least { table.iter().map(row).collect() } else { vec![(1.0, wanted, wanted)] }
}

/// Return the attributes that define this variable; without a type for distributions of `cvar`.
fn known_attributes(one: &Distribution, span: Span) -> Vec<Attribute> {
    let number = |name: &str, value: f64| Attribute {
        name: At { it: name.to_owned(), span },
        value: Some(At { it: Value::Float(value), span }),
    };
    let text = |name: &str, value: &str| Attribute {
        name: At { it: name.to_owned(), span },
        value: Some(At { it: Value::Text(vec![crate::ast::Piece::Literal(value.to_owned())]), span }),
    };
    let mut said = vec![number("seed", one.seed as f64), number("round", one.round)];
    if one.max.is_finite() {
        said.push(number("max", one.max));
    }
    if one.origin == Origin::Kernel {
        said.push(text("randsrc", "urandom"));
    }
    match &one.shape {
        Shape::Uniform { lower, upper } => {
            said.extend([text("type", "uniform"), number("min", *lower)]);
            if one.max.total_cmp(upper).is_ne() {
                said.push(number("mean", f64::midpoint(*lower, *upper)));
            }
        }
        Shape::Gamma { lower, mean, shape } => {
            said.extend([text("type", "gamma"), number("min", *lower), number("mean", *mean)]);
            said.push(number("gamma", shape * 1000.0));
        }
        Shape::Table(rows) => {
            let at = |value: f64| At { it: Value::Float(value), span };
            let rows = rows.iter().map(|row| [at(row.0 * 100.0), at(row.1), at(row.2)]).collect();
            let name = At { it: "randtable".to_owned(), span };
            said.push(Attribute { name, value: Some(At { it: Value::Table(rows), span }) });
            let least = one.shape_least();
            said.push(number("min", least));
        }
        _ => {}
    }
    said
}

impl Distribution {
    fn shape_least(&self) -> f64 {
        match &self.shape {
            Shape::Table(rows) => rows.iter().map(|row| row.1.min(row.2)).fold(f64::INFINITY, f64::min),
            Shape::Uniform { lower, .. } | Shape::Gamma { lower, .. } => *lower,
            _ => self.min,
        }
    }
}

/// Return an attribute of a random variable, for `$x.mean` in texts and expressions; `None` if it does not have it.
pub(super) fn attribute(one: &Distribution, name: &str) -> Option<Evaluated> {
    Some(match name {
        "type" => Evaluated::Text(
            match one.shape {
                Shape::Uniform { .. } => "uniform",
                Shape::Gamma { .. } => "gamma",
                Shape::Table(_) => "tabular",
                _ => "custom",
            }
            .to_owned(),
        ),
        "randsrc" => {
            Evaluated::Text(if one.origin == Origin::Kernel { "urandom" } else { "rand48" }.to_owned())
        }
        "seed" => Evaluated::Integer(i64::try_from(one.seed).unwrap_or(i64::MAX)),
        "mean" => Evaluated::Float(one.shape.mean()),
        "min" => Evaluated::Float(one.shape_least()),
        "max" => Evaluated::Float(one.max),
        "round" => Evaluated::Float(one.round),
        "gamma" => match one.shape {
            Shape::Gamma { shape, .. } => Evaluated::Float(shape * 1000.0),
            _ => return None,
        },
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn bits(seed: f64) -> u64 {
    seed as i64 as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_its_values_unless_told_otherwise() {
        let table = [(0.5, 1024.0, 1024.0), (0.5, 2048.0, 4096.0)];
        assert_eq!(scaled(&table, 1024.0, None), table);
        // Minimum 1024 → 0, mean 2048 → 1000: (4096 - 1024) · 1000 / 1024 = 3000.
        assert_eq!(scaled(&table, 0.0, Some(1000.0))[1], (0.5, 1000.0, 3000.0));
        assert_eq!(scaled(&[(1.0, 8.0, 8.0)], 8.0, None), [(1.0, 8.0, 8.0)]);
    }
}
