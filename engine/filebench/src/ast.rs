//! A workload file as it was written: commands, attributes and values, each with its place. Nothing is
//! resolved here.

use super::diagnostic::Span;

/// Something with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct At<T> {
    /// The thing.
    pub it: T,
    /// Where it was written.
    pub span: Span,
}

/// A piece of a text in quotes.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Itself.
    Literal(String),
    /// What the variable holds.
    Variable(Name),
}

/// What follows a `$`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// `$name`.
    Plain(String),
    /// `$name.mean` and the like: an attribute of a random variable.
    Attribute(String, String),
    /// `$(NAME)`: an environment variable.
    Environment(String),
    /// `${name}`: something that the programme knows.
    Internal(String),
}

/// A value, before it is evaluated.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number, its suffix applied.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A word, or a text in quotes.
    Text(Vec<Piece>),
    /// A variable.
    Variable(Name),
    /// Two values and an operator between them.
    Binary(Box<At<Value>>, Operator, Box<At<Value>>),
    /// `randvar(…)`.
    Random(Vec<Attribute>),
    /// `cvar(…)`.
    Custom(Vec<Attribute>),
    /// The rows of a `randtable`: percentage, from, to.
    Table(Vec<[At<Value>; 3]>),
}

/// What two numbers are combined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the operator of its name")]
pub enum Operator {
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
}

/// `name` or `name=value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Which.
    pub name: At<String>,
    /// Its value; `None` if it stands alone, which means true.
    pub value: Option<At<Value>>,
}

/// `flowop KIND attributes`.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowopUse {
    /// Which kind, or the name of a composite one.
    pub kind: At<String>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Values for the variables of a composite one.
    pub locals: Vec<(At<String>, Option<At<Value>>)>,
}

/// `thread attributes { flowops }`.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadDefinition {
    /// The word `thread`.
    pub span: Span,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// What it does, over and over.
    pub flowops: Vec<FlowopUse>,
}

/// How a run ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuitMode {
    /// When its time is over.
    #[default]
    Timeout,
    /// When all threads have no more files.
    AllDone,
    /// When the first thread has no more files.
    FirstDone,
}

/// What `stats` is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum StatsCommand {
    /// Start afresh.
    Clear,
    /// Note what was done since, under a name if one is given.
    Snap(Option<At<Value>>),
}

/// What `create`, `shutdown` and `list` are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entity {
    /// Files and filesets.
    Files,
    /// Processes.
    Processes,
    /// Flowops.
    Flowops,
}

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// `set $name = value`.
    Set(At<Name>, At<Value>),
    /// `define randvar name=$name, …`.
    DefineRandom(Vec<Attribute>),
    /// `define file` (true) or `define fileset`.
    DefineFiles(bool, Vec<Attribute>),
    /// `define process … { threads }`.
    DefineProcess(Vec<Attribute>, Vec<ThreadDefinition>),
    /// `define flowop … { flowops }`: attributes, variables with their defaults, what it does.
    DefineFlowop(Vec<Attribute>, Vec<(At<String>, Option<At<Value>>)>, Vec<FlowopUse>),
    /// `create files` or `create processes`.
    Create(Entity),
    /// `shutdown files` or `shutdown processes`.
    Shutdown(Entity),
    /// `list fileset` or `list flowop`.
    List(Entity),
    /// `run [seconds]`.
    Run(Option<At<Value>>),
    /// `psrun [[-]period [seconds]]`.
    PeriodicRun(Option<At<Value>>, Option<At<Value>>),
    /// `sleep seconds` and `warmup seconds` (true).
    Sleep(At<Value>, bool),
    /// `eventgen rate=…`.
    EventRate(Vec<Attribute>),
    /// `echo`, and `usage` (true).
    Echo(At<Value>, bool),
    /// `system "…"`.
    System(At<Value>),
    /// `stats …`.
    Stats(StatsCommand),
    /// `set mode quit …`.
    Mode(QuitMode),
    /// `enable lathist` (true) or `disable lathist`.
    LatencyHistogram(bool),
    /// `enable multi`, `domultisync`: several clients.
    Multiple(Vec<Attribute>),
    /// `foreach $name in values { commands }`.
    ForEach(At<String>, Vec<At<Value>>, Vec<At<Command>>),
    /// `load name`: the commands of a personality.
    Load(At<String>),
    /// `version`.
    Version,
    /// `help`.
    Help,
    /// `debug N`, `set mode noUseStats` and others that change nothing here.
    Nothing,
    /// `quit`.
    Quit,
}
