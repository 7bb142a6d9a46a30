//! Syntax tree of a workload file: commands, attributes and values, each with its position. Names are not resolved
//! here.

use super::diagnostic::Span;

/// An element of the syntax tree with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct At<T> {
    /// The element.
    pub it: T,
    /// Position in the source.
    pub span: Span,
}

/// A part of a text value.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Literal text.
    Literal(String),
    /// A variable, to be replaced by its value.
    Variable(Name),
}

/// A reference to a variable: what follows a `$`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// `$name`.
    Plain(String),
    /// `$name.attribute`, such as `$name.mean`: an attribute of a random variable.
    Attribute(String, String),
    /// `$(NAME)`: an environment variable.
    Environment(String),
    /// `${name}`: an internal variable, such as `${date}`, or an ordinary variable.
    Internal(String),
}

/// An expression that is not evaluated yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An integer, multiplied by its suffix.
    Integer(i64),
    /// A number with a decimal point, multiplied by its suffix.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A word or a quoted text.
    Text(Vec<Piece>),
    /// A variable.
    Variable(Name),
    /// Left operand, operator and right operand.
    Binary(Box<At<Value>>, Operator, Box<At<Value>>),
    /// `randvar(…)`.
    Random(Vec<Attribute>),
    /// `cvar(…)`.
    Custom(Vec<Attribute>),
    /// Rows of a `randtable`: percentage, lower bound, upper bound.
    Table(Vec<[At<Value>; 3]>),
}

/// A binary arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the operator of its name")]
pub enum Operator {
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
}

/// An attribute: `name` or `name=value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Canonical name of the attribute.
    pub name: At<String>,
    /// Value; `None` for a name without a value, which sets a flag to true.
    pub value: Option<At<Value>>,
}

/// A use of a flowop: `flowop KIND attributes`.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowopUse {
    /// Kind of the flowop, or the name of a composite flowop.
    pub kind: At<String>,
    /// Attributes of the flowop.
    pub attributes: Vec<Attribute>,
    /// Variables of a composite flowop and their values; `None` keeps the default.
    pub locals: Vec<(At<String>, Option<At<Value>>)>,
}

/// A thread: `thread attributes { flowops }`.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadDefinition {
    /// Position of the word `thread`.
    pub span: Span,
    /// Attributes of the thread.
    pub attributes: Vec<Attribute>,
    /// Flowops that the thread repeats until the run ends.
    pub flowops: Vec<FlowopUse>,
}

/// Condition that ends a run (`set mode quit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuitMode {
    /// The run time is over. A flowop that finds no file ends the run early, with a warning.
    #[default]
    Timeout,
    /// No thread has a file left.
    AllDone,
    /// One thread has no file left.
    FirstDone,
}

/// Action of a `stats` command.
#[derive(Debug, Clone, PartialEq)]
pub enum StatsCommand {
    /// Reset the statistics.
    Clear,
    /// Report the statistics since the last reset, with an optional name.
    Snap(Option<At<Value>>),
}

/// Object of the commands `create`, `shutdown` and `list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entity {
    /// Files and filesets.
    Files,
    /// Processes.
    Processes,
    /// Flowops.
    Flowops,
}

/// A command of the workload file.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// `set $name = value`.
    Set(At<Name>, At<Value>),
    /// `define randvar name=$name, …`.
    DefineRandom(Vec<Attribute>),
    /// `define file` (true) or `define fileset` (false).
    DefineFiles(bool, Vec<Attribute>),
    /// `define process … { threads }`.
    DefineProcess(Vec<Attribute>, Vec<ThreadDefinition>),
    /// `define flowop … { flowops }`: attributes, variables with their defaults, flowops.
    DefineFlowop(Vec<Attribute>, Vec<(At<String>, Option<At<Value>>)>, Vec<FlowopUse>),
    /// `create files` or `create processes`.
    Create(Entity),
    /// `shutdown files` or `shutdown processes`.
    Shutdown(Entity),
    /// `list fileset` or `list flowop`.
    List(Entity),
    /// `run [seconds]`.
    Run(Option<At<Value>>),
    /// `psrun [[-]period [seconds]]`: period, run time.
    PeriodicRun(Option<At<Value>>, Option<At<Value>>),
    /// `sleep seconds` (false) or `warmup seconds` (true).
    Sleep(At<Value>, bool),
    /// `eventgen rate=…`.
    EventRate(Vec<Attribute>),
    /// `echo` (false) or `usage` (true).
    Echo(At<Value>, bool),
    /// `system "…"`.
    System(At<Value>),
    /// `stats …`.
    Stats(StatsCommand),
    /// `set mode quit …`.
    Mode(QuitMode),
    /// `enable lathist` (true) or `disable lathist` (false).
    LatencyHistogram(bool),
    /// `enable multi` or `domultisync`: several clients, which are not supported.
    Multiple(Vec<Attribute>),
    /// `foreach $name in values { commands }`.
    ForEach(At<String>, Vec<At<Value>>, Vec<At<Command>>),
    /// `load name`: run the commands of an included personality.
    Load(At<String>),
    /// `version`.
    Version,
    /// `help`.
    Help,
    /// A command without effect in this implementation, such as `debug N` or `set mode noUseStats`.
    Nothing,
    /// `quit` or `exit`.
    Quit,
}
