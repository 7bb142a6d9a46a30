//! Parser for definitions of files, processes, threads and flowops.

use super::{Failed, Parsed, Parser};
use crate::ast::{Command, FlowopUse, ThreadDefinition};
use crate::scan::Kind;
use crate::words;

impl Parser<'_> {
    /// Parse the rest of a `define` command.
    pub(super) fn definition(&mut self) -> Parsed<Command> {
        const KNOWN: [&str; 5] = ["file", "fileset", "process", "flowop", "randvar"];
        let what = self.word("'file', 'fileset', 'process', 'flowop' or 'randvar'")?;
        match what.it.as_str() {
            "file" | "files" => Ok(Command::DefineFiles(true, self.attributes(&words::FILE, false)?.0)),
            "fileset" | "filesets" => {
                Ok(Command::DefineFiles(false, self.attributes(&words::FILESET, false)?.0))
            }
            "process" | "processes" => self.process(),
            "flowop" => {
                let (attributes, locals) = self.attributes(&words::COMPOSITE, true)?;
                self.symbol('{')?;
                Ok(Command::DefineFlowop(attributes, locals, self.flowops()?))
            }
            "randvar" => self.random_definition(),
            _ => self.unknown_word("entity", &what, &KNOWN),
        }
    }

    /// Parse `name=$x, type=…`. Here `name` is the variable to define and is not evaluated.
    fn random_definition(&mut self) -> Parsed<Command> {
        Ok(Command::DefineRandom(self.attributes(&words::RANDOM, false)?.0))
    }

    fn process(&mut self) -> Parsed<Command> {
        let (attributes, _) = self.attributes(&words::PROCESS, false)?;
        self.symbol('{')?;
        let mut threads = Vec::new();
        let mut failed = false;
        loop {
            if self.accept_symbol('}') {
                break;
            }
            if !self.is_word("thread") {
                return self.expected("'thread' or '}'");
            }
            if let Ok(thread) = self.thread() {
                threads.push(thread);
                continue;
            }
            failed = true;
            if !self.skip_to("thread") {
                return Err(Failed);
            }
        }
        // The errors are recorded. The other threads were parsed only to find more errors.
        if failed { Err(Failed) } else { Ok(Command::DefineProcess(attributes, threads)) }
    }

    fn thread(&mut self) -> Parsed<ThreadDefinition> {
        let span = self.span();
        self.advance();
        let (attributes, _) = self.attributes(&words::THREAD, false)?;
        self.symbol('{')?;
        Ok(ThreadDefinition { span, attributes, flowops: self.flowops()? })
    }

    /// Parse flowops up to and including the closing brace.
    fn flowops(&mut self) -> Parsed<Vec<FlowopUse>> {
        let mut flowops = Vec::new();
        let mut failed = false;
        loop {
            if self.accept_symbol('}') {
                break;
            }
            if !self.is_word("flowop") {
                return self.expected("'flowop' or '}'");
            }
            if let Ok(flowop) = self.flowop() {
                flowops.push(flowop);
                continue;
            }
            failed = true;
            if !self.skip_to("flowop") {
                return Err(Failed);
            }
        }
        if failed { Err(Failed) } else { Ok(flowops) }
    }

    fn flowop(&mut self) -> Parsed<FlowopUse> {
        self.advance();
        let kind = self.word("what the flowop does, such as 'read'")?;
        let (attributes, locals) = match self.kind() {
            Kind::Word(word) if word != "flowop" => self.attributes(&words::FLOWOP, true)?,
            Kind::Variable(_) => self.attributes(&words::FLOWOP, true)?,
            _ => (Vec::new(), Vec::new()),
        };
        Ok(FlowopUse { kind, attributes, locals })
    }

    /// Skip to the next `word` or to the closing brace of this block. Returns false at the end of the file or at a
    /// command keyword that starts a line, because the closing brace is then missing.
    fn skip_to(&mut self, word: &str) -> bool {
        let mut depth = 0_usize;
        loop {
            match self.kind() {
                Kind::End => return false,
                Kind::Symbol('{') => depth += 1,
                Kind::Symbol('}') if depth == 0 => return true,
                Kind::Symbol('}') => depth -= 1,
                Kind::Word(found) if depth == 0 && found == word => return true,
                _ if depth == 0 && self.command_begins() => return false,
                _ => {}
            }
            self.advance();
        }
    }
}
