//! Parser from tokens to commands. After an error it continues at the next flowop, thread or command, so that one pass
//! reports as many independent errors as possible.

mod commands;
mod entities;
mod values;

use super::ast::{At, Command, Name};
use super::diagnostic::{Diagnostic, Diagnostics, Source, Span, nearest};
use super::scan::{Kind, Token, scan};

/// Keywords that start a command.
pub(crate) const COMMANDS: [&str; 27] = [
    "create",
    "debug",
    "define",
    "disable",
    "domultisync",
    "echo",
    "enable",
    "eventgen",
    "exit",
    "foreach",
    "fscheck",
    "fsflush",
    "help",
    "list",
    "load",
    "nousestats",
    "psrun",
    "quit",
    "run",
    "set",
    "shutdown",
    "sleep",
    "stats",
    "system",
    "usage",
    "version",
    "warmup",
];

/// Parse a source. Returns the valid commands, and adds the errors to `mistakes`.
pub(crate) fn parse(source: Source, mistakes: &mut Diagnostics) -> Vec<At<Command>> {
    let tokens = scan(&source.text, mistakes.sources.len(), mistakes);
    mistakes.sources.push(source);
    let mut parser = Parser { tokens, at: 0, depth: 0, operators: 0, mistakes };
    let mut commands = Vec::new();
    while parser.kind() != &Kind::End {
        let before = parser.at;
        match parser.command() {
            Ok(command) => commands.push(command),
            Err(Failed) => parser.skip_to_command(before),
        }
    }
    commands
}

/// Marker of a parse error that is already recorded in the diagnostics.
#[derive(Debug)]
pub(super) struct Failed;

type Parsed<T> = Result<T, Failed>;

/// Maximum nesting depth of expressions and loops.
const DEEPEST: usize = 64;
/// Maximum number of operators in a value.
const MOST_OPERATORS: usize = 1000;

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// Number of operators so far in the current value.
    operators: usize,
    mistakes: &'a mut Diagnostics,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        // The last token is `Kind::End`; the parser never moves past it.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> &Kind {
        &self.token().kind
    }

    fn span(&self) -> Span {
        self.token().span
    }

    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.mistakes.push(diagnostic);
        Err(Failed)
    }

    /// Record the error that `what` was expected instead of the current token. Always returns `Err`.
    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        let found = match self.kind() {
            Kind::Word(word) => format!("'{word}'"),
            Kind::Integer(number, _) => format!("{number}"),
            Kind::Float(number, _) => format!("{number}"),
            Kind::Variable(name) => format!("'{}'", shown(name)),
            Kind::Quoted(_) => "a text in quotes".to_owned(),
            Kind::Symbol(symbol) => format!("'{symbol}'"),
            Kind::End => "the end of the file".to_owned(),
        };
        self.fail(Diagnostic::new(self.span(), format!("expected {what}, found {found}")))
    }

    fn is_symbol(&self, symbol: char) -> bool {
        self.kind() == &Kind::Symbol(symbol)
    }

    fn accept_symbol(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn symbol(&mut self, symbol: char) -> Parsed<()> {
        if self.accept_symbol(symbol) { Ok(()) } else { self.expected(&format!("'{symbol}'")) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(), Kind::Word(found) if found == word)
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn word(&mut self, what: &str) -> Parsed<At<String>> {
        let span = self.span();
        let Kind::Word(word) = self.kind() else { return self.expected(what) };
        let it = word.clone();
        self.advance();
        Ok(At { it, span })
    }

    fn plain_variable(&mut self) -> Parsed<At<String>> {
        let span = self.span();
        let Kind::Variable(Name::Plain(name)) = self.kind() else {
            return self.expected("a variable such as $nfiles");
        };
        let it = name.clone();
        self.advance();
        Ok(At { it, span })
    }

    /// Call `read` one nesting level deeper. Fails at a depth of [`DEEPEST`].
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEEPEST {
            return self.fail(Diagnostic::new(self.span(), "nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Return whether a command starts here: the current token is a command keyword and the first token of its line.
    fn command_begins(&self) -> bool {
        let token = self.token();
        matches!(&token.kind, Kind::Word(word) if token.starts_line && COMMANDS.contains(&word.as_str()))
    }

    /// Skip the rest of a failed command that started at token `before`. Stops at a command keyword that starts a line,
    /// or at another word in column 1 that may be a misspelt command.
    fn skip_to_command(&mut self, before: usize) {
        if self.at == before {
            self.advance();
        }
        let seems = |token: &Token| {
            let first = token.starts_line && token.span.column == 1;
            first && matches!(&token.kind, Kind::Word(word) if word != "thread" && word != "flowop")
        };
        while self.kind() != &Kind::End && !self.command_begins() && !seems(self.token()) {
            self.advance();
        }
    }

    fn unknown_word<T>(&mut self, what: &str, word: &At<String>, known: &[&str]) -> Parsed<T> {
        let diagnostic = unknown(what, word, known);
        self.fail(diagnostic)
    }
}

/// Create the diagnostic for an unknown word. The hint is a similar known word, or the list of known words if there
/// are at most 24.
pub(super) fn unknown(what: &str, word: &At<String>, known: &[&str]) -> Diagnostic {
    let diagnostic = Diagnostic::new(word.span, format!("unknown {what} '{}'", word.it));
    match nearest(&word.it, known.iter().copied()) {
        Some(near) => diagnostic.hint(format!("did you mean '{near}'?")),
        None if known.len() <= 24 => diagnostic.hint(format!("known: {}", known.join(", "))),
        None => diagnostic,
    }
}

/// Format a variable as in the workload file.
pub(super) fn shown(name: &Name) -> String {
    match name {
        Name::Plain(name) => format!("${name}"),
        Name::Attribute(name, attribute) => format!("${name}.{attribute}"),
        Name::Environment(name) => format!("$({name})"),
        Name::Internal(name) => format!("${{{name}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(usize, usize, String)> {
        let mut mistakes = Diagnostics::default();
        parse(Source { name: "x.f".into(), text: text.into() }, &mut mistakes);
        let place = |one: &Diagnostic| (one.span.line, one.span.column, one.message.clone());
        mistakes.found.iter().map(place).collect()
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let text = "set nfiles=5\nset $b=\ndefine fileset name=a,pth=/tmp\nfrobnicate 3\n\
                    define process name=p {\n  thread name=t {\n    flowop read name=r,iosise=4k\n    \
                    flowop write name=w,=3\n  }\n}\nrun soon\n";
        let expected = [
            (1, 5, "expected a variable such as $nfiles, or 'mode', found 'nfiles'"),
            (3, 1, "expected a value, found 'define'"),
            (3, 23, "unknown attribute 'pth' of a fileset"),
            (4, 1, "unknown command 'frobnicate'"),
            (7, 24, "unknown attribute 'iosise' of a flowop"),
            (8, 25, "expected an attribute, found '='"),
            (11, 5, "expected a number or a variable, found 'soon'"),
        ];
        let found = places(text);
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!((found.0, found.1, found.2.as_str()), expected);
        }
    }

    #[test]
    fn a_block_that_is_never_closed_is_told() {
        let found = places("define process name=p {\n thread name=t {\n  flowop hog name=h,value=1\n");
        assert_eq!(found, [(4, 1, "expected 'flowop' or '}', found the end of the file".to_owned())]);
    }
}
