//! Compiler from commands to a [`Program`]. It resolves variables, binds flowops to their filesets and targets, and
//! reports all errors. It changes nothing on the system; the only inputs besides the text are the environment
//! variables, the host name and the time, if the file refers to them.
//!
//! Variables in definitions are resolved when the files or processes that need them are created. A `set` after the
//! `define` therefore still takes effect.

mod composites;
mod custom;
mod definitions;
mod distributions;
mod evaluated;
mod filesets;
mod flowops;
mod processes;
mod steps;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::ast::{At, Attribute, Command, FlowopUse, QuitMode, ThreadDefinition, Value};
use super::diagnostic::{Diagnostic, Diagnostics, Source, Span};
use super::parse::parse;
use super::program::{FilesetSpec, Program, Step};
use super::random::Distribution;
use evaluated::Evaluated;
use fslab_engine::document::Warning;

/// Options of the compiler.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The working directory. The paths of all filesets are resolved below it.
    pub directory: PathBuf,
    /// Variables and their values as typed. They override every `set` in the file.
    pub overrides: BTreeMap<String, String>,
    /// Run time in seconds that overrides those in the file.
    pub seconds: Option<f64>,
    /// Whether the command `system` is allowed.
    pub allow_system: bool,
    /// Whether to reuse all files of an earlier run without checking them.
    pub reuse: bool,
}

/// A defined process. Its attributes are not evaluated yet.
#[derive(Debug, Clone)]
struct ProcessDefinition {
    span: Span,
    attributes: Vec<Attribute>,
    threads: Vec<ThreadDefinition>,
}

/// A defined composite flowop. Its default of `iters` and its variables are not evaluated yet.
#[derive(Debug, Clone)]
struct CompositeDefinition {
    name: String,
    iters: Option<At<Value>>,
    locals: Vec<(At<String>, Option<At<Value>>)>,
    flowops: Vec<FlowopUse>,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
struct Compiler {
    context: Context,
    mistakes: Diagnostics,
    variables: BTreeMap<String, Evaluated>,
    overridden: BTreeSet<String>,
    mentioned: BTreeSet<String>,
    distributions: Vec<Arc<Distribution>>,
    files: Vec<(Span, bool, Vec<Attribute>)>,
    processes: Vec<ProcessDefinition>,
    composites: Vec<CompositeDefinition>,
    rate: Option<At<Value>>,
    mode: QuitMode,
    histogram: bool,
    filesets: Option<Arc<Vec<FilesetSpec>>>,
    running: bool,
    ran: bool,
    /// Whether `quit` was reached.
    quit: bool,
    steps: Vec<Step>,
    usage: Vec<String>,
    warnings: Vec<Warning>,
    loading: usize,
    /// Number of commands processed so far, with unrolled loops.
    executed: usize,
    /// Total size in bytes of all evaluated texts.
    text_bytes: usize,
}

/// Compile a workload.
///
/// # Errors
/// The errors found in the workload, at most 100. If the text cannot be parsed, only syntax errors.
pub fn compile(source: Source, context: Context) -> Result<Program, Diagnostics> {
    let mut compiler = Compiler { context, ..Compiler::default() };
    let commands = parse(source, &mut compiler.mistakes);
    if !compiler.mistakes.is_empty() {
        // Stop here: a definition with a syntax error is missing, and every use of it would be one more error.
        return Err(compiler.mistakes);
    }
    compiler.apply_overrides();
    compiler.commands(&commands);
    compiler.finish();
    compiler.into_program()
}

impl Compiler {
    fn mistake(&mut self, span: Span, message: impl Into<String>) {
        self.mistakes.push(Diagnostic::new(span, message));
    }

    fn mistake_with_hint(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.mistakes.push(Diagnostic::new(span, message).hint(hint));
    }

    fn warn(&mut self, kind: &'static str, message: String) {
        let warning = Warning { kind, message };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Apply each override as a `set` command before the first command of the file. A value that is not valid in the
    /// language becomes a text.
    fn apply_overrides(&mut self) {
        for (name, written) in self.context.overrides.clone() {
            let text = format!("set ${name}={written}");
            let source = Source { name: format!("--set {name}={written}"), text };
            let before = self.mistakes.found.len();
            let commands = parse(source.clone(), &mut self.mistakes);
            let understood = self.mistakes.found.len() == before
                && matches!(commands.as_slice(), [At { it: Command::Set(..), .. }]);
            if understood {
                self.commands(&commands);
            } else {
                self.mistakes.found.truncate(before);
                self.variables.insert(name.clone(), Evaluated::Text(written.clone()));
            }
            self.overridden.insert(name);
        }
        self.mentioned.clear();
    }

    fn finish(&mut self) {
        if !self.ran && !self.processes.is_empty() && !self.measures() {
            self.run_step(Span::default(), None, None);
        } else if self.mistakes.is_empty() {
            // Also check definitions that no command uses.
            self.check_definitions();
        }
        for name in self.overridden.clone() {
            if !self.mentioned.contains(&name) {
                let known: Vec<String> = self.mentioned.iter().map(|known| format!("${known}")).collect();
                let source = self
                    .mistakes
                    .sources
                    .iter()
                    .position(|one| one.name.starts_with(&format!("--set {name}=")));
                let span = Span { source: source.unwrap_or(0), line: 1, column: 5, length: name.len() + 1 };
                self.mistake_with_hint(
                    span,
                    format!("the workload has no variable ${name}"),
                    format!("it has {}", known.join(", ")),
                );
            }
        }
    }

    /// Return whether the file itself reports statistics (`stats snap`, `stats dump`). It then needs no implicit `run`.
    fn measures(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Snapshot(_)))
    }

    fn into_program(self) -> Result<Program, Diagnostics> {
        if !self.mistakes.is_empty() {
            return Err(self.mistakes);
        }
        let shown = |(name, value): (&String, &Evaluated)| (name.clone(), value.to_string());
        Ok(Program {
            variables: self.variables.iter().map(shown).collect(),
            steps: self.steps,
            distributions: self.distributions.into(),
            usage: self.usage,
            warnings: self.warnings,
        })
    }
}
