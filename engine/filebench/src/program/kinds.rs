//! What flowops there are, what they count as and what they move.

macro_rules! kinds {
    ($($variant:ident $name:literal $class:ident $moves:ident,)*) => {
        /// What a flowop does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each is the flowop of its name")]
        pub enum Kind { $($variant,)* Composite }

        impl Kind {
            /// The flowop of this name.
            pub fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Composite => "composite" }
            }
            /// Its class.
            pub fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* Self::Composite => Class::Other }
            }
            /// What it does with the contents of files.
            pub fn moves(self) -> Moves {
                match self { $(Self::$variant => Moves::$moves,)* Self::Composite => Moves::Nothing }
            }
        }

        /// The names of all flowops.
        pub const FLOWOPS: &[&str] = &[$($name,)*];
    };
}

/// What a flowop counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// An operation on files; part of the summary.
    Io,
    /// Waiting for other threads.
    Synchronisation,
    /// Anything else.
    Other,
}

/// What happens to the contents of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// They are read.
    Reads,
    /// They are written.
    Writes,
    /// Nothing.
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
