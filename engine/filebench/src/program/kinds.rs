//! The kinds of flowops, with their class and direction of data transfer.

macro_rules! kinds {
    ($($variant:ident $name:literal $class:ident $moves:ident,)*) => {
        /// The kind of a flowop.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each is the flowop of its name")]
        pub enum Kind { $($variant,)* Composite }

        impl Kind {
            /// Return the kind with this name, without `composite`; `None` for an unknown name.
            pub fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
            /// Return the name in the language.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Composite => "composite" }
            }
            /// Return the class of this kind.
            pub fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* Self::Composite => Class::Other }
            }
            /// Return whether this kind reads or writes file contents.
            pub fn moves(self) -> Moves {
                match self { $(Self::$variant => Moves::$moves,)* Self::Composite => Moves::Nothing }
            }
        }

        /// Names of all flowops, without `composite`.
        pub const FLOWOPS: &[&str] = &[$($name,)*];
    };
}

/// The class of a flowop in the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A file operation, which is part of the summary.
    Io,
    /// Synchronisation with other threads.
    Synchronisation,
    /// Any other flowop.
    Other,
}

/// The direction of data transfer of a flowop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// Reads file contents.
    Reads,
    /// Writes file contents.
    Writes,
    /// Transfers no file contents.
    Nothing,
}

kinds! {
    Read "read" Io Reads,
    Write "write" Io Writes,
    ReadWholeFile "readwholefile" Io Reads,
    WriteWholeFile "writewholefile" Io Writes,
    AppendFile "appendfile" Io Writes,
    AppendFileRandom "appendfilerand" Io Writes,
    CreateFile "createfile" Io Nothing,
    OpenFile "openfile" Io Nothing,
    CloseFile "closefile" Io Nothing,
    DeleteFile "deletefile" Io Nothing,
    StatFile "statfile" Io Nothing,
    Fsync "fsync" Io Nothing,
    FsyncSet "fsyncset" Io Nothing,
    MakeDirectory "makedir" Io Nothing,
    RemoveDirectory "removedir" Io Nothing,
    ListDirectory "listdir" Io Nothing,
    AioWrite "aiowrite" Io Writes,
    AioWait "aiowait" Io Nothing,
    Block "block" Synchronisation Nothing,
    Wakeup "wakeup" Synchronisation Nothing,
    SemBlock "semblock" Synchronisation Nothing,
    SemPost "sempost" Synchronisation Nothing,
    Hog "hog" Other Nothing,
    Delay "delay" Other Nothing,
    EventLimit "eventlimit" Other Nothing,
    IopsLimit "iopslimit" Other Nothing,
    OpsLimit "opslimit" Other Nothing,
    BandwidthLimit "bwlimit" Other Nothing,
    FinishOnCount "finishoncount" Other Nothing,
    FinishOnBytes "finishonbytes" Other Nothing,
    Print "print" Other Nothing,
    TestRandomVariable "testrandvar" Other Nothing,
}
