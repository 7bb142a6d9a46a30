//! The commands. The options of most are the parameters of their operation; the others add options in a file each.

mod delete;
mod iozone;
mod populate;
mod wml;

use clap::Subcommand;
use fslab_engine::VERSION;
use fslab_engine::document::{Document, Outcome, PROTOCOL};
use fslab_engine::measure::clock;
use fslab_engine::operations::{
    analyze, classify, duplicates, meta, search, small_files, sync_read, sync_write,
};
use serde::Serialize;
use serde_json::Value;

use crate::table;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Populate(populate::Arguments),
    /// Sum up the files of a tree by directory, extension, age and owner
    ///
    /// Allocated bytes are those of files, links and directories, as `du` counts them. A file with several
    /// names is counted once. Apparent bytes are the sizes of regular files.
    Analyze(analyze::Parameters),
    /// Determine the type of each file of a tree: text, image, archive, executable, …
    Classify(classify::Parameters),
    /// Find sets of files with the same contents
    ///
    /// Files of the same size are compared by their first and last 4 KiB, then byte by byte; files up to 16 KiB
    /// by a BLAKE3 hash of their contents. Several names (hard links) of one file are not duplicates.
    Duplicates(duplicates::Parameters),
    /// Find the files that contain a pattern, and count the matching lines
    ///
    /// Every regular file is searched as bytes: binary files are searched too, and no ignore rules apply. The
    /// counts are those of `rg --no-unicode -uuu -a -c`.
    Search(search::Parameters),
    /// Read every file of a tree to its end
    SyncRead(sync_read::Parameters),
    /// Mirror a tree: create and write every file, set times and permissions
    ///
    /// Symbolic links and hard links are copied as links. Owners are kept if run as root. Extended attributes and
    /// devices are not copied. With --method read-write, holes are filled with zeros. A file that cannot be copied
    /// completely is removed again and counted as failed.
    ///
    /// What --sync makes durable: `none`: nothing; `file`: the contents of each file (fsync), but not its name;
    /// `directory`: contents and names (fsync of each file, and of each directory when it is complete); `syncfs`:
    /// everything, at the end.
    SyncWrite(sync_write::Parameters),
    Delete(delete::Arguments),
    /// Create, stat, read and delete many small files
    ///
    /// The files are in the directory fslab-small-files inside DIR. Their names depend on --files and --dirs
    /// only, so each operation can be a separate run: `--operations create` keeps the files, and a later run
    /// with the same parameters reads or deletes them. Creating and removing the directories is not measured.
    SmallFiles(small_files::Parameters),
    /// Create, open, stat, rename, link, list and remove many empty files
    ///
    /// The files are in the directory fslab-meta inside DIR. Their names depend on --files and --dirs only, so
    /// each operation can be a separate run, between create and unlink. Creating and removing the directories
    /// of the files is not measured, nor is removing the links.
    Meta(meta::Parameters),
    Iozone(iozone::Arguments),
    Wml(wml::Arguments),
}

impl Command {
    pub(crate) fn run(&self) -> anyhow::Result<Shown> {
        match self {
            Self::Populate(arguments) => arguments.run(),
            Self::Analyze(it) => Shown::new("analyze", it.measured.threads, it, analyze::run(it)?),
            Self::Classify(it) => Shown::new("classify", it.measured.threads, it, classify::run(it)?),
            Self::Duplicates(it) => Shown::new("duplicates", it.measured.threads, it, duplicates::run(it)?),
            Self::Search(it) => Shown::new("search", it.measured.threads, it, search::run(it)?),
            Self::SyncRead(it) => Shown::new("sync-read", it.measured.threads, it, sync_read::run(it)?),
            Self::SyncWrite(it) => Shown::new("sync-write", it.measured.threads, it, sync_write::run(it)?),
            Self::Delete(arguments) => arguments.run(),
            Self::SmallFiles(given) => {
                let largest_bytes = given.largest_bytes.or(Some(given.size_bytes));
                let it = &small_files::Parameters { largest_bytes, ..given.clone() };
                Shown::new("small-files", it.measured.threads, it, small_files::run(it)?)
            }
            Self::Meta(it) => Shown::new("meta", it.measured.threads, it, meta::run(it)?),
            Self::Iozone(arguments) => arguments.run(),
            Self::Wml(arguments) => arguments.run(),
        }
    }
}

/// The result of a command, and the text to print instead of the usual table, if any.
#[derive(Debug)]
pub(crate) struct Shown(Document<Value>, Option<String>);

impl Shown {
    fn new(
        command: &'static str,
        threads: usize,
        parameters: &impl Serialize,
        outcome: Outcome,
    ) -> anyhow::Result<Self> {
        let document = Document {
            protocol: PROTOCOL,
            engine: VERSION,
            command,
            parameters: serde_json::to_value(parameters)?,
            clock_overhead_ns: clock::overhead_ns(),
            threads,
            operations: outcome.operations,
            answer: outcome.answer,
            warnings: outcome.warnings,
        };
        Ok(Self(document, None))
    }

    /// Set the text to print instead of the table.
    fn with_text(mut self, text: String) -> Self {
        self.1 = Some(text);
        self
    }

    pub(crate) fn to_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(&self.0)?)
    }

    pub(crate) fn to_table(&self) -> String {
        self.1.clone().unwrap_or_else(|| table::render(&self.0))
    }
}
