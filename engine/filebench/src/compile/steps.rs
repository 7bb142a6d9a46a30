//! Compilation of commands to steps, in order: unrolls loops and includes loaded personalities.

use std::sync::Arc;

use super::evaluated::Scope;
use super::{Compiler, ProcessDefinition};
use crate::ast::{At, Command, Entity, Name, StatsCommand, Value};
use crate::diagnostic::{Source, Span};
use crate::parse::{parse, unknown};
use crate::personalities;
use crate::program::{Step, Timing};

/// Default run time in seconds.
const DEFAULT_SECONDS: f64 = 60.0;
/// Default period of `psrun` in seconds.
const DEFAULT_PERIOD: f64 = 10.0;
/// Maximum number of steps of a workload.
const MOST_STEPS: usize = 10_000;
/// Maximum number of commands with unrolled loops.
const MOST_COMMANDS: usize = 1_000_000;
/// Maximum depth of personalities that load others.
const DEEPEST_LOAD: usize = 4;
/// Maximum number of definitions, each of files, processes and composite flowops.
const MOST_DEFINITIONS: usize = 10_000;
/// Maximum number of periods of a run.
const MOST_PERIODS: f64 = 10_000.0;

impl Compiler {
    pub(super) fn commands(&mut self, commands: &[At<Command>]) {
        for command in commands {
            if self.quit {
                return; // within a loop or a personality
            }
            self.executed += 1;
            if self.steps.len() > MOST_STEPS || self.executed > MOST_COMMANDS {
                return self.mistake(command.span, "there are too many steps");
            }
            if self.files.len().max(self.processes.len()).max(self.composites.len()) > MOST_DEFINITIONS {
                return self.mistake(command.span, "there are too many definitions");
            }
            if matches!(command.it, Command::Quit) && self.mistakes.is_empty() {
                // The commands after `quit` are not executed. The definitions before it are still checked.
                (self.ran, self.quit) = (true, true);
                return;
            }
            self.command(command);
        }
    }

    fn command(&mut self, command: &At<Command>) {
        match &command.it {
            Command::Set(name, value) => self.set(name, value),
            Command::DefineRandom(attributes) => self.define_random(command.span, attributes),
            Command::DefineFiles(single, attributes) => {
                self.files.push((command.span, *single, attributes.clone()));
                self.filesets = None;
            }
            Command::DefineProcess(attributes, threads) => {
                let (span, attributes, threads) = (command.span, attributes.clone(), threads.clone());
                self.processes.push(ProcessDefinition { span, attributes, threads });
            }
            Command::DefineFlowop(attributes, locals, flowops) => {
                self.define_composite(command.span, attributes, locals.clone(), flowops.clone());
            }
            Command::Create(Entity::Files) => {
                self.create_files();
            }
            Command::Create(_) => self.create_processes(command.span),
            Command::Shutdown(Entity::Files) => {
                self.filesets = None;
                self.steps.push(Step::ShutdownFiles);
            }
            Command::Shutdown(_) => {
                (self.running, self.filesets) = (false, None);
                self.steps.push(Step::ShutdownProcesses);
            }
            Command::Run(seconds) => self.run_step(command.span, seconds.as_ref(), None),
            Command::PeriodicRun(period, seconds) => {
                let period = period.as_ref().map_or(Some(DEFAULT_PERIOD), |period| {
                    self.fixed(period, "the period", f64::MIN, &Scope::new())
                });
                if let Some(period) = period {
                    let period = if period == 0.0 { DEFAULT_PERIOD } else { period };
                    self.run_step(command.span, seconds.as_ref(), Some(period));
                }
            }
            Command::LatencyHistogram(on) => self.histogram = *on,
            Command::Mode(mode) => self.mode = *mode,
            Command::ForEach(variable, values, commands) => self.for_each(variable, values, commands),
            Command::Load(name) => self.load(name),
            Command::Multiple(_) => {
                let hint = "fslab measures one machine; leave this command out";
                self.mistake_with_hint(command.span, "several clients are not supported", hint);
            }
            Command::Nothing | Command::Quit => {}
            other => self.small_step(command.span, other),
        }
    }

    fn small_step(&mut self, span: Span, command: &Command) {
        match command {
            Command::Sleep(seconds, warmup) => {
                if *warmup && !self.running {
                    self.create_processes(span);
                }
                if let Some(seconds) = self.fixed(seconds, "the time", 0.0, &Scope::new()) {
                    self.steps.push(Step::Sleep(seconds));
                }
            }
            Command::EventRate(attributes) => {
                let rate =
                    attributes.iter().find(|one| one.name.it == "rate").and_then(|one| one.value.clone());
                match rate {
                    Some(rate) => {
                        self.rate = Some(rate);
                        self.push_rate();
                    }
                    None => self.mistake(span, "eventgen needs 'rate='"),
                }
            }
            Command::Echo(text, usage) => {
                if let Some(text) = self.text(text, &Scope::new()) {
                    if *usage { self.usage.push(text) } else { self.steps.push(Step::Say(text)) }
                }
            }
            Command::System(text) => {
                if !self.context.allow_system {
                    let hint = "--allow-system lets the workload run shell commands";
                    return self.mistake_with_hint(span, "'system' is not allowed", hint);
                }
                if let Some(text) = self.text(text, &Scope::new()) {
                    self.steps.push(Step::System(text));
                }
            }
            Command::Stats(StatsCommand::Clear) => self.steps.push(Step::Clear),
            Command::Stats(StatsCommand::Snap(name)) => {
                let name = name.as_ref().and_then(|name| self.text(name, &Scope::new()));
                self.steps.push(Step::Snapshot(name));
            }
            Command::Version => self.steps.push(Step::Say(format!("fslab-engine {}", fslab_engine::VERSION))),
            Command::Help => {
                let text = "the language is described in docs/filebench.md of fslab";
                self.steps.push(Step::Say(text.to_owned()));
            }
            Command::List(entity) => self.list(span, *entity),
            _ => {}
        }
    }

    fn set(&mut self, name: &At<Name>, value: &At<Value>) {
        match &name.it {
            Name::Attribute(variable, attribute) => {
                self.mentioned.insert(variable.clone());
                if !self.overridden.contains(variable) {
                    self.change_random(name, variable, attribute, value);
                }
            }
            Name::Plain(variable) => {
                self.mentioned.insert(variable.clone());
                if self.overridden.contains(variable) {
                    return;
                }
                if let Some(value) = self.evaluate(value, &Scope::new()) {
                    self.variables.insert(variable.clone(), value);
                    if self.running {
                        self.push_rate();
                    }
                }
            }
            _ => {}
        }
    }

    /// Add a step that sets the event rate to its current value. While processes run, `set` calls this again, because
    /// the rate may depend on the variable.
    fn push_rate(&mut self) {
        let Some(rate) = self.rate.clone() else { return };
        if let Some(rate) = self.fixed(&rate, "the rate", 0.0, &Scope::new()) {
            self.steps.push(Step::Rate(rate));
        }
    }

    pub(super) fn run_step(&mut self, span: Span, seconds: Option<&At<Value>>, period: Option<f64>) {
        let written = seconds.and_then(|seconds| self.fixed(seconds, "the run time", 0.0, &Scope::new()));
        self.create_processes(span);
        // 0 means no time limit: the run lasts until the threads have ended. In the mode `timeout`, in which they
        // usually do not end by themselves, it lasts for the default time.
        let asked = self.context.seconds.or(written).filter(|seconds| *seconds > 0.0);
        let endless = self.mode == crate::ast::QuitMode::Timeout;
        let seconds = asked.or(endless.then_some(DEFAULT_SECONDS));
        let length = period.map(|period| seconds.unwrap_or(DEFAULT_SECONDS) / period.abs());
        if length.is_some_and(|periods| periods > MOST_PERIODS) {
            self.mistake(span, format!("the run would have more than {MOST_PERIODS} periods"));
        }
        let (fresh, period) = (period.is_some_and(|period| period < 0.0), period.map(f64::abs));
        self.steps.push(Step::Run(Timing { seconds, period, fresh }));
        (self.ran, self.running, self.filesets) = (true, false, None);
    }

    fn create_files(&mut self) -> Option<Arc<Vec<crate::program::FilesetSpec>>> {
        if self.filesets.is_none() {
            let made = Arc::new(self.all_filesets()?);
            self.steps.push(Step::CreateFiles(Arc::clone(&made)));
            self.filesets = Some(made);
        }
        self.filesets.clone()
    }

    fn create_processes(&mut self, span: Span) {
        if self.running {
            return;
        }
        let filesets = self.create_files();
        if self.processes.is_empty() {
            return self.mistake(span, "there is no process to run");
        }
        let filesets = filesets.unwrap_or_default();
        self.push_rate();
        if let Some(model) = self.model(filesets) {
            self.steps.push(Step::CreateProcesses(Arc::new(model)));
        }
        self.running = true;
    }

    /// Check definitions that no command uses, and record their errors.
    pub(super) fn check_definitions(&mut self) {
        if let Some(filesets) = self.all_filesets() {
            if !self.processes.is_empty() {
                self.model(Arc::new(filesets));
            }
        }
    }

    fn for_each(&mut self, variable: &At<String>, values: &[At<Value>], commands: &[At<Command>]) {
        self.mentioned.insert(variable.it.clone());
        for value in values {
            if let Some(value) = self.evaluate(value, &Scope::new()) {
                self.variables.insert(variable.it.clone(), value);
                if self.running {
                    self.push_rate();
                }
                self.commands(commands);
                if self.quit || self.executed > MOST_COMMANDS {
                    return;
                }
            }
        }
    }

    fn load(&mut self, name: &At<String>) {
        let short = name.it.trim_end_matches(".f");
        let Some(personality) = personalities::find(short) else {
            let known: Vec<&str> = personalities::ALL.iter().map(|one| one.name).collect();
            return self.mistakes.push(unknown("personality", name, &known));
        };
        if self.loading == DEEPEST_LOAD {
            return self.mistake(name.span, "personalities load each other too deeply");
        }
        let source = Source { name: format!("{short}.f"), text: personality.text.to_owned() };
        let commands = parse(source, &mut self.mistakes);
        self.loading += 1;
        self.commands(&commands);
        self.loading -= 1;
    }

    fn list(&mut self, span: Span, entity: Entity) {
        let names: Vec<String> = if entity == Entity::Flowops {
            crate::program::FLOWOPS.iter().map(|&name| name.to_owned()).collect()
        } else {
            self.all_filesets().into_iter().flatten().map(|one| one.name).collect()
        };
        let text = names.join(" ");
        self.text_bytes += text.len();
        if !self.is_too_much_text(span) {
            self.steps.push(Step::Say(text));
        }
    }
}
