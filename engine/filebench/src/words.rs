//! Which attributes each entity has. Names that mean the same are one.

/// Something with attributes.
#[derive(Debug)]
pub(crate) struct Entity {
    /// How it is called in messages.
    pub(crate) name: &'static str,
    /// What may be written, and what it is called here.
    pub(crate) attributes: &'static [(&'static str, &'static str)],
}

impl Entity {
    /// What an attribute is called here, if there is such a one.
    pub(crate) fn find(&self, written: &str) -> Option<&'static str> {
        self.attributes.iter().find(|(name, _)| *name == written).map(|(_, canonical)| *canonical)
    }
}

macro_rules! entity {
    ($ident:ident, $name:literal, [$($same:literal),*] $(, $written:literal => $canonical:literal)*) => {
        pub(crate) const $ident: Entity = Entity {
            name: $name,
            attributes: &[$(($same, $same),)* $(($written, $canonical),)*],
        };
    };
}

entity!(FILE, "a file",
    ["name", "path", "size", "prealloc", "paralloc", "reuse", "trusttree", "readonly", "writeonly", "cached",
     "filesizegamma"],
    "filesize" => "size", "sizegamma" => "filesizegamma");
entity!(FILESET, "a fileset",
    ["name", "path", "size", "prealloc", "paralloc", "reuse", "trusttree", "readonly", "writeonly", "cached",
     "filesizegamma", "entries", "dirwidth", "dirgamma", "dirdepthrv", "leafdirs", "namelength"],
    "filesize" => "size", "sizegamma" => "filesizegamma");
entity!(PROCESS, "a process", ["name", "instances", "nice", "useism"]);
entity!(THREAD, "a thread", ["name", "instances", "memsize", "useism", "ioprio", "nice", "procname"]);
entity!(FLOWOP, "a flowop",
    ["name", "filename", "fd", "srcfd", "opennext", "iosize", "workingset", "random", "dsync", "directio",
     "indexed", "target", "iters", "value", "blocking", "highwater", "noreadahead"],
    "filesetname" => "filename", "fileset" => "filename", "file" => "filename", "index" => "indexed",
    "wss" => "workingset", "srfd" => "srcfd", "rotatefd" => "opennext");
entity!(COMPOSITE, "a composite flowop", ["name", "iters"]);
entity!(
    RANDOM,
    "a random variable",
    ["name", "type", "seed", "gamma", "mean", "min", "max", "round", "randsrc", "randtable"]
);
entity!(CUSTOM, "a custom variable", ["type", "parameters", "min", "max", "round"]);
entity!(EVENTS, "eventgen", ["rate"]);
entity!(MULTI, "several clients", ["master", "client", "value"]);
