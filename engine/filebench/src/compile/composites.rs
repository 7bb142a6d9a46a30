//! Expansion of composite flowops: compiles the flowops within them with the values of their variables.

use super::evaluated::Scope;
use super::processes::Building;
use super::{Compiler, CompositeDefinition};
use crate::ast::FlowopUse;
use crate::parse::unknown;
use crate::program::{Arguments, Flowop, Kind};

/// Maximum nesting depth of composite flowops.
const DEEPEST: usize = 32;

impl Compiler {
    pub(super) fn composite(
        &mut self,
        used: &FlowopUse,
        definition: &CompositeDefinition,
        name: &str,
        scope: &Scope,
        building: &mut Building,
        depth: usize,
    ) -> Option<Vec<Flowop>> {
        if depth == DEEPEST {
            self.mistake(
                used.kind.span,
                format!("'{}' contains itself, or is nested more than {DEEPEST} deep", definition.name),
            );
            return None;
        }
        for attribute in &used.attributes {
            if !["name", "iters"].contains(&attribute.name.it.as_str()) {
                let message = format!("'{}' is not supported by a composite flowop", attribute.name.it);
                self.mistake(attribute.name.span, message);
            }
        }
        let inner = self.scope_of(used, definition, scope);
        let flowops = definition.flowops.clone();
        let children: Vec<Flowop> = flowops
            .iter()
            .filter_map(|flowop| self.flowop(flowop, name, &inner, building, depth + 1))
            .collect();
        // If only the definition sets `iters`, add a composite flowop with that number around the children.
        match &definition.iters {
            Some(value) if !used.attributes.iter().any(|one| one.name.it == "iters") => {
                let iters = self.number(value, &inner)?;
                Some(vec![Flowop {
                    kind: Kind::Composite,
                    local: usize::MAX,
                    info: usize::MAX,
                    label: definition.name.clone(),
                    iters,
                    children,
                    with: Arguments::none(),
                }])
            }
            _ => Some(children),
        }
    }

    /// Evaluate the variables of a composite flowop: the values given at its use, otherwise the defaults.
    fn scope_of(&mut self, used: &FlowopUse, definition: &CompositeDefinition, scope: &Scope) -> Scope {
        let mut inner = Scope::new();
        for (name, default) in &definition.locals {
            let value = default.as_ref().and_then(|value| self.evaluate(value, &inner.clone()));
            inner.insert(name.it.clone(), value);
        }
        for (name, value) in &used.locals {
            if !inner.contains_key(&name.it) {
                let known: Vec<&str> = definition.locals.iter().map(|(name, _)| name.it.as_str()).collect();
                self.mistakes.push(unknown(&format!("variable of '{}'", definition.name), name, &known));
                continue;
            }
            if let Some(value) = value {
                let value = self.evaluate(value, scope);
                inner.insert(name.it.clone(), value);
            }
        }
        inner
    }
}
