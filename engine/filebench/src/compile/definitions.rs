//! Compilation of the definitions of random variables and composite flowops.

use super::evaluated::{Evaluated, Scope};
use super::{Compiler, CompositeDefinition};
use crate::ast::{At, Attribute, FlowopUse, Name, Piece, Value};
use crate::diagnostic::Span;

impl Compiler {
    pub(super) fn define_random(&mut self, span: Span, attributes: &[Attribute]) {
        let name = attributes.iter().find(|one| one.name.it == "name").and_then(|one| one.value.as_ref());
        let name = match name.map(|value| (&value.it, value.span)) {
            Some((Value::Variable(Name::Plain(name)), _)) => name.clone(),
            Some((Value::Text(pieces), _)) if matches!(pieces.as_slice(), [Piece::Literal(_)]) => {
                let [Piece::Literal(name)] = pieces.as_slice() else { return };
                name.clone()
            }
            _ => return self.mistake(span, "a random variable needs 'name=$something'"),
        };
        self.mentioned.insert(name.clone());
        if self.overridden.contains(&name) {
            return;
        }
        if let Some(variable) = self.random_variable(span, attributes) {
            self.variables.insert(name, Evaluated::Random(variable));
        }
    }

    pub(super) fn define_composite(
        &mut self,
        span: Span,
        attributes: &[Attribute],
        locals: Vec<(At<String>, Option<At<Value>>)>,
        flowops: Vec<FlowopUse>,
    ) {
        let value = |wanted: &str| {
            attributes.iter().find(|one| one.name.it == wanted).and_then(|one| one.value.clone())
        };
        let Some(name) = value("name").and_then(|name| self.text(&name, &Scope::new())) else {
            return self.mistake(span, "a composite flowop needs a name");
        };
        if crate::program::Kind::of(&name).is_some() {
            return self.mistake(span, format!("'{name}' is the name of a flowop that exists"));
        }
        self.composites.retain(|one| one.name != name);
        self.composites.push(CompositeDefinition { name, iters: value("iters"), locals, flowops });
    }
}
