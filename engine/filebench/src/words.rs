//! Attributes of each entity of the language. Synonyms have one canonical name.

/// An entity with attributes.
#[derive(Debug)]
pub(crate) struct Entity {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// Pairs of accepted name and canonical name.
    pub(crate) attributes: &'static [(&'static str, &'static str)],
}

impl Entity {
    /// Return the canonical name of an attribute; `None` if the entity has no such attribute.
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
