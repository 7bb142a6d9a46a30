//! Parser for commands.

use super::{COMMANDS, Failed, Parsed, Parser};
use crate::ast::{At, Command, Entity, QuitMode, StatsCommand, Value};
use crate::scan::Kind;
use crate::words;

impl Parser<'_> {
    pub(super) fn command(&mut self) -> Parsed<At<Command>> {
        let word = self.word("a command")?;
        let span = word.span;
        let it = match word.it.as_str() {
            "set" => self.set()?,
            "define" => self.definition()?,
            "create" => Command::Create(self.entity(&["files", "processes"])?),
            "shutdown" => self.shutdown()?,
            "list" => Command::List(self.entity(&["fileset", "flowop"])?),
            "run" => Command::Run(self.optional_number()?),
            "psrun" => Command::PeriodicRun(self.optional_number()?, self.optional_number()?),
            "sleep" => Command::Sleep(self.number()?, false),
            "warmup" => Command::Sleep(self.number()?, true),
            "eventgen" => self.event_rate()?,
            "echo" => Command::Echo(self.text()?, false),
            "usage" => Command::Echo(self.text()?, true),
            "system" => Command::System(self.text()?),
            "stats" => Command::Stats(self.stats()?),
            "enable" => self.enable(true)?,
            "disable" => self.enable(false)?,
            "domultisync" => Command::Multiple(self.attributes(&words::MULTI, false)?.0),
            "foreach" => self.for_each()?,
            "load" => Command::Load(self.word("the name of a personality")?),
            "version" => Command::Version,
            "help" => Command::Help,
            "debug" => {
                self.number()?;
                Command::Nothing
            }
            "nousestats" | "fsflush" | "fscheck" => Command::Nothing,
            "quit" | "exit" => Command::Quit,
            _ => return self.unknown_word("command", &word, &COMMANDS),
        };
        Ok(At { it, span })
    }

    fn set(&mut self) -> Parsed<Command> {
        if self.accept_word("mode") {
            return self.mode();
        }
        let span = self.span();
        let Kind::Variable(name) = self.kind().clone() else {
            return self.expected("a variable such as $nfiles, or 'mode'");
        };
        self.advance();
        self.symbol('=')?;
        let value = self.value_of_attribute(&name)?;
        Ok(Command::Set(At { it: name, span }, value))
    }

    fn mode(&mut self) -> Parsed<Command> {
        let word = self.word("'quit'")?;
        match word.it.as_str() {
            "quit" => {
                let how = self.word("'timeout', 'alldone' or 'firstdone'")?;
                match how.it.as_str() {
                    "timeout" => Ok(Command::Mode(QuitMode::Timeout)),
                    "alldone" => Ok(Command::Mode(QuitMode::AllDone)),
                    "firstdone" => Ok(Command::Mode(QuitMode::FirstDone)),
                    _ => self.unknown_word("mode", &how, &["timeout", "alldone", "firstdone"]),
                }
            }
            "nousestats" | "noUseStats" => Ok(Command::Nothing),
            _ => self.unknown_word("mode", &word, &["quit", "nousestats"]),
        }
    }

    fn entity(&mut self, known: &[&str]) -> Parsed<Entity> {
        let word = self.word(&format!("'{}' or '{}'", known[0], known[1]))?;
        match word.it.as_str() {
            "file" | "files" | "fileset" | "filesets" => Ok(Entity::Files),
            "process" | "processes" | "thread" | "threads" if known.contains(&"processes") => {
                Ok(Entity::Processes)
            }
            "flowop" | "flowops" if known.contains(&"flowop") => Ok(Entity::Flowops),
            _ => self.unknown_word("entity", &word, known),
        }
    }

    fn shutdown(&mut self) -> Parsed<Command> {
        let bare = !matches!(self.kind(), Kind::Word(_)) || self.command_begins();
        Ok(Command::Shutdown(if bare { Entity::Processes } else { self.entity(&["files", "processes"])? }))
    }

    /// Parse an optional number. Returns `Ok(None)` at the end of the line. Any other token on the line is an error.
    fn optional_number(&mut self) -> Parsed<Option<At<Value>>> {
        match self.kind() {
            Kind::Integer(..) | Kind::Float(..) | Kind::Variable(_) | Kind::Symbol('(') => {
                // Take an integer alone, not as the start of an expression: the period of `psrun` may be negative, and
                // no separator stands between the arguments.
                if self.depth == 0 && matches!(self.kind(), Kind::Integer(..)) {
                    return self.single_number().map(Some);
                }
                self.number().map(Some)
            }
            Kind::End => Ok(None),
            _ if self.token().starts_line => Ok(None),
            _ => self.expected("a number or a variable"),
        }
    }

    fn single_number(&mut self) -> Parsed<At<Value>> {
        let span = self.span();
        let Kind::Integer(number, _) = *self.kind() else { return self.expected("a number") };
        self.advance();
        Ok(At { it: Value::Integer(number), span })
    }

    fn event_rate(&mut self) -> Parsed<Command> {
        Ok(Command::EventRate(self.attributes(&words::EVENTS, false)?.0))
    }

    fn stats(&mut self) -> Parsed<StatsCommand> {
        const KNOWN: [&str; 5] = ["clear", "snap", "dump", "xmldump", "multidump"];
        let word = self.word("'clear', 'snap' or 'dump'")?;
        match word.it.as_str() {
            "clear" => Ok(StatsCommand::Clear),
            "snap" => Ok(StatsCommand::Snap(None)),
            "dump" | "xmldump" | "multidump" => Ok(StatsCommand::Snap(Some(self.text()?))),
            _ => self.unknown_word("stats command", &word, &KNOWN),
        }
    }

    fn enable(&mut self, on: bool) -> Parsed<Command> {
        let word = self.word("'lathist' or 'multi'")?;
        match word.it.as_str() {
            "lathist" => Ok(Command::LatencyHistogram(on)),
            "multi" => {
                Ok(Command::Multiple(if matches!(self.kind(), Kind::Word(_)) && !self.command_begins() {
                    self.attributes(&words::MULTI, false)?.0
                } else {
                    Vec::new()
                }))
            }
            _ => self.unknown_word("feature", &word, &["lathist", "multi"]),
        }
    }

    fn for_each(&mut self) -> Parsed<Command> {
        let variable = self.plain_variable()?;
        if !self.accept_word("in") {
            return self.expected("'in'");
        }
        let mut values = vec![self.value()?];
        while self.accept_symbol(',') {
            values.push(self.value()?);
        }
        self.symbol('{')?;
        let commands = self.nested(Self::commands_in_braces)?;
        Ok(Command::ForEach(variable, values, commands))
    }

    fn commands_in_braces(&mut self) -> Parsed<Vec<At<Command>>> {
        let (mut commands, mut failed) = (Vec::new(), false);
        while !self.accept_symbol('}') {
            if self.kind() == &Kind::End {
                return self.expected("'}'");
            }
            if let Ok(command) = self.command() {
                commands.push(command);
                continue;
            }
            failed = true;
            self.advance();
            while !matches!(self.kind(), Kind::End | Kind::Symbol('}')) && !self.command_begins() {
                self.advance();
            }
        }
        if failed { Err(Failed) } else { Ok(commands) }
    }
}
