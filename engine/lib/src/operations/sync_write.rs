//! Mirroring a tree, as the target of a synchronisation does: create, write, set times.
//!
//! Permissions, times and (as root) owners are kept, links are made again, a file with several names
//! stays one file. Extended attributes are not copied, and holes are filled with zeros.

mod copy;
mod links;
mod mirror;

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode};
use serde::Serialize;
use serde_json::json;

use self::copy::Copier;
use self::mirror::Mirror;
use crate::attributes::Attributes;
use crate::document::{Bandwidth, Outcome, path_as_text};
use crate::error::{Context, Error, Result};
use crate::measure::Measure;
use crate::measure::phase::{Finish, Phase};
use crate::measure::recorder::{Recorder, Syscall};
use crate::walk::{Directory, Entry, Handle, Node, Order, Tree, Tried, Visit, Visitor, walk};
use crate::{memory, sys};

/// How the contents are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Read and write, as over a network.
    #[default]
    ReadWrite,
    /// The kernel copies, and may share blocks.
    CopyFileRange,
    /// Blocks are shared, or it is an error.
    Reflink,
}

/// What makes the copy durable, within the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// Nothing.
    None,
    /// `fsync` of each file.
    File,
    /// `fsync` of each directory once everything in it is written.
    Directory,
    /// One `syncfs` at the end.
    #[default]
    Syncfs,
}

/// What is to be done.
#[derive(Debug, Clone, Serialize)]
pub struct Parameters {
    /// The tree.
    #[serde(serialize_with = "path_as_text")]
    pub source: PathBuf,
    /// Where its mirror goes: a directory that is made, or is empty.
    #[serde(serialize_with = "path_as_text")]
    pub destination: PathBuf,
    /// With how many threads.
    pub threads: usize,
    /// Which directory comes next.
    pub order: Order,
    /// Whether directories on other file systems are left out.
    pub one_file_system: bool,
    /// How much is read and written at once.
    pub buffer_bytes: usize,
    /// How the contents are copied.
    pub method: Method,
    /// What makes the copy durable.
    pub sync: Sync,
    /// What is measured.
    #[serde(flatten)]
    pub measure: Measure,
}

/// Does the work.
///
/// # Errors
/// If either top cannot be opened, the destination holds anything or lies within the source, or is
/// full. Anything in the source that vanishes or refuses is counted.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    if parameters.buffer_bytes == 0 {
        return Err(Error::Invalid("the buffer must not be empty".into()));
    }
    let tree = Tree::open(&parameters.source, !parameters.one_file_system)?;
    let mirror = Mirror::make(parameters)?;
    let buffers = (parameters.buffer_bytes as u64).saturating_mul(parameters.threads as u64);
    memory::need("the buffers of all threads", buffers)?;
    let phase = Phase::new("sync-write", parameters.threads, &parameters.measure, Bandwidth::Counted)?;
    let make = |_| {
        let copier = Copier::new(parameters)?;
        Ok(Writer { mirror: &mirror, copier, counts: Counts::default() })
    };
    let finish = |finish: &mut Finish| {
        mirror.links.make_deferred(&mirror.root, &parameters.destination)?;
        if parameters.sync == Sync::Syncfs {
            let sync = || rustix::fs::syncfs(&mirror.root).context("sync", || &parameters.destination);
            return finish.sync(sync);
        }
        Ok(())
    };
    let (operation, writers, troubles) = walk(&phase, &tree, parameters.order, make, Some(finish))?;
    let mut counts = Counts::default();
    for writer in writers {
        counts.merge(&writer.counts);
    }
    let answer = json!({
        "files": counts.files,
        "bytes": operation.bytes,
        "directories": counts.directories,
        "symlinks": counts.symlinks,
        "hard_links": counts.hard_links,
        "left_out": counts.left_out,
        "troubles": &troubles,
    });
    let warnings = troubles.warning().into_iter().collect();
    Ok(Outcome { operations: vec![operation], answer: Some(answer), warnings })
}

#[derive(Debug, Default)]
struct Counts {
    files: u64,
    directories: u64,
    symlinks: u64,
    hard_links: u64,
    left_out: u64,
}

impl Counts {
    fn merge(&mut self, other: &Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.symlinks += other.symlinks;
        self.hard_links += other.hard_links;
        self.left_out += other.left_out;
    }
}

/// A directory of the mirror, and what it has to become once it is full.
#[derive(Debug)]
struct Place {
    /// Not kept where too many are open.
    descriptor: Option<OwnedFd>,
    attributes: Attributes,
}

/// A descriptor that is there, or was opened just now.
enum Reached<'a> {
    Open(&'a OwnedFd),
    Again(OwnedFd),
}

impl AsFd for Reached<'_> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Self::Open(descriptor) => descriptor.as_fd(),
            Self::Again(descriptor) => descriptor.as_fd(),
        }
    }
}

/// One thread's part.
struct Writer<'a> {
    mirror: &'a Mirror<'a>,
    copier: Copier<'a>,
    counts: Counts,
}

impl Writer<'_> {
    fn reach<'n>(&self, node: &'n Node<Place>) -> rustix::io::Result<Reached<'n>> {
        if let Some(descriptor) = &node.data.descriptor {
            return Ok(Reached::Open(descriptor));
        }
        sys::open_beneath(&self.mirror.root, &node.relative_path()).map(Reached::Again)
    }

    /// Makes symbolic links, pipes and sockets; devices are left out.
    fn special(&mut self, directory: &Directory<'_, Place>, entry: &Entry<'_>, into: &Reached<'_>) -> Visit {
        let attributes = Attributes::of(directory.handle, entry.name).tried("stat")?;
        let permissions = Mode::from_raw_mode(attributes.permissions);
        let made = match entry.kind {
            FileType::Symlink => {
                self.counts.symlinks += 1;
                let target =
                    rustix::fs::readlinkat(directory.handle, entry.name, Vec::new()).tried("read link")?;
                rustix::fs::symlinkat(target, into, entry.name)
            }
            FileType::Fifo | FileType::Socket => {
                rustix::fs::mknodat(into, entry.name, entry.kind, permissions, 0)
                    .and_then(|()| rustix::fs::chmodat(into, entry.name, permissions, AtFlags::empty()))
            }
            _ => {
                self.counts.left_out += 1;
                return Ok(());
            }
        };
        made.map_err(|errno| self.mirror.trouble("create", errno, directory.node, entry.name))?;
        copy::give_attributes_by_name(into, entry.name, &attributes, self.mirror.privileged)
            .tried("set times of")
    }
}

impl Visitor for Writer<'_> {
    type Data = Place;

    fn root(&mut self, tree: &Tree, _recorder: &mut Recorder<'_>) -> Visit<Place> {
        let attributes = Attributes::of_open(tree.root()).tried("stat")?;
        let descriptor = rustix::io::fcntl_dupfd_cloexec(&self.mirror.root, 0).tried("open")?;
        self.counts.directories += 1;
        Ok(Place { descriptor: Some(descriptor), attributes })
    }

    fn enter(
        &mut self,
        parent: &Directory<'_, Place>,
        name: &CStr,
        opened: &Handle,
        recorder: &mut Recorder<'_>,
    ) -> Visit<Option<Place>> {
        let attributes = Attributes::of_open(opened).tried("stat")?;
        recorder.lap(Syscall::Stat);
        let into = self.reach(parent.node).tried("open directory")?;
        let mode = Mode::from_raw_mode(attributes.permissions & 0o777 | 0o700);
        rustix::fs::mkdirat(&into, name, mode)
            .map_err(|errno| self.mirror.trouble("create directory", errno, parent.node, name))?;
        recorder.lap(Syscall::Mkdir);
        let descriptor = if parent.tree.is_crowded() {
            None
        } else {
            let opened = sys::open_directory(&into, name);
            Some(opened.map_err(|errno| self.mirror.trouble("open directory", errno, parent.node, name))?)
        };
        recorder.lap(Syscall::Open);
        self.counts.directories += 1;
        Ok(Some(Place { descriptor, attributes }))
    }

    fn file(
        &mut self,
        directory: &Directory<'_, Place>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        let into = self.reach(directory.node).tried("open directory")?;
        if entry.kind != FileType::RegularFile {
            self.special(directory, entry, &into)?;
            recorder.begin();
            return Ok(());
        }
        let mirror = self.mirror;
        match self.copier.copy(mirror, directory, entry, &into, recorder)? {
            Some(bytes) => {
                self.counts.files += 1;
                recorder.end(bytes);
            }
            None => self.counts.hard_links += 1,
        }
        Ok(())
    }

    fn leave(&mut self, _tree: &Tree, node: &Node<Place>, recorder: &mut Recorder<'_>) -> Visit {
        recorder.begin();
        let directory = self.reach(node).tried("open directory")?;
        copy::give_attributes(&directory, &node.data.attributes, self.mirror, true).tried("set times of")?;
        recorder.lap(Syscall::Utime);
        if self.mirror.parameters.sync == Sync::Directory {
            rustix::fs::fsync(&directory).tried("fsync")?;
            recorder.lap(Syscall::Fsync);
        }
        Ok(())
    }
}
