//! Workloads that come with the engine. Their text is part of the binary.

/// A workload that has a name.
#[derive(Debug, Clone, Copy)]
pub struct Personality {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Personality {
    /// What it is, in one line: its first comment.
    pub fn summary(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

macro_rules! personalities {
    ($($name:literal),* $(,)?) => {
        /// All of them, by name.
        pub const ALL: &[Personality] = &[
            $(Personality { name: $name, text: include_str!(concat!("../../personalities/", $name, ".f")) },)*
        ];
    };
}

personalities!(
    "copyfiles",
    "createfiles",
    "deletefiles",
    "fileserver",
    "listdirs",
    "makedirs",
    "mongo",
    "oltp",
    "openfiles",
    "randomread",
    "randomrw",
    "randomwrite",
    "removedirs",
    "singlestreamread",
    "singlestreamwrite",
    "statfiles",
    "varmail",
    "videoserver",
    "webproxy",
    "webserver",
    "writefsync",
);

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Personality> {
    ALL.iter().find(|one| one.name == name)
}
