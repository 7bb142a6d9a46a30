//! Workloads that are included in the engine. Their text is part of the binary.

/// An included workload.
#[derive(Debug, Clone, Copy)]
pub struct Personality {
    /// Name of the workload.
    pub name: &'static str,
    /// Text of the workload file.
    pub text: &'static str,
}

impl Personality {
    /// Return a description in one line: the comment in the first line of the text.
    pub fn summary(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

macro_rules! personalities {
    ($($name:literal),* $(,)?) => {
        /// All included workloads, sorted by name.
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

/// Return the included workload with this name; `None` if there is none.
pub fn find(name: &str) -> Option<&'static Personality> {
    ALL.iter().find(|one| one.name == name)
}
