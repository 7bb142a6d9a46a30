//! Mirroring of a tree, as the target of a synchronisation does: create, write, set times.
//!
//! Permissions, times and (as root) owners are preserved. Symbolic links, pipes and sockets are recreated, and hard
//! links are preserved. Devices are skipped, and extended attributes are not copied. With `read_write`, holes are
//! filled with zeros.

mod copy;
mod links;
mod mirror;

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, Mode};
use serde::Serialize;
use serde_json::json;

use self::copy::Copier;
use self::links::Linked;
use self::mirror::Mirror;
use crate::attributes::Attributes;
use crate::document::{Bandwidth, Outcome, path_as_text};
use crate::error::{Error, Result};
use crate::measure::Measured;
use crate::measure::phase::Finish;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::units::parse_length;
use crate::walk::{Directory, Entry, Handle, Node, Order, Tree, Tried, Visit, Visitor, walk};
use crate::{memory, sys};

/// Method of copying the contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// `read(2)` and `write(2)`.
    #[default]
    ReadWrite,
    /// `copy_file_range(2)`: the kernel copies, and may share blocks.
    CopyFileRange,
    /// `FICLONE`: the copy shares all blocks.
    Reflink,
}

/// System calls that make the copy durable, within the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// Nothing is synced.
    None,
    /// `fsync` of each file: contents and attributes are durable, names may not be.
    File,
    /// `fsync` of each file, of each directory when it is complete, and of the parent of the destination: contents,
    /// attributes and names are durable.
    Directory,
    /// One `syncfs` at the end: everything is durable.
    #[default]
    Syncfs,
}

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// Tree to mirror.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "SRC")]
    pub source: PathBuf,
    /// New or empty directory; directories that delete refuses are refused here too.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "DST")]
    pub destination: PathBuf,
    /// Size of a read and write.
    #[arg(long = "buffer", value_name = "SIZE", default_value = "256k", value_parser = parse_length)]
    pub buffer_bytes: usize,
    /// How contents are copied; a method that the file system does not support is an error.
    #[arg(long, value_enum, default_value_t)]
    pub method: Method,
    /// How the copy is made durable, in the measured time.
    #[arg(long, value_enum, default_value_t)]
    pub sync: Sync,
    /// Which directory is visited next: the one found last (depth) or first (breadth).
    #[arg(long, value_enum, default_value_t)]
    pub order: Order,
    /// Skip directories on other file systems.
    #[arg(long, short = 'x')]
    pub one_file_system: bool,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Copy the tree.
///
/// # Errors
/// Fails if the source or the destination cannot be opened, if the destination is not empty, must not be filled, is
/// inside the source or is full, or if the file system does not support the method. Files in the source that vanish or
/// cannot be accessed are counted instead.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    if parameters.buffer_bytes == 0 {
        return Err(Error::Invalid("the buffer must not be empty".into()));
    }
    let tree = Tree::open(&parameters.source, !parameters.one_file_system)?;
    let mirror = Mirror::make(parameters, &tree)?;
    let buffers = (parameters.buffer_bytes as u64).saturating_mul(parameters.measured.threads as u64);
    memory::need("the buffers of all threads", buffers)?;
    let phase = parameters.measured.phase("sync-write", Bandwidth::Counted)?;
    let make = |_| {
        let copier = Copier::new(parameters)?;
        Ok(Writer { mirror: &mirror, copier, counts: Counts::default() })
    };
    let mut linked = Linked::default();
    let finish = |finish: &mut Finish| {
        linked = mirror.links.make_deferred(&mirror)?;
        match parameters.sync {
            Sync::None | Sync::File => Ok(()),
            Sync::Directory => mirror.sync_name(),
            Sync::Syncfs => finish.sync(|| mirror.sync()),
        }
    };
    let (mut operation, writers, mut troubles) = walk(&phase, &tree, parameters.order, make, Some(finish))?;
    operation.errors += linked.troubles.count();
    troubles.merge(linked.troubles);
    let mut counts = Counts::default();
    for writer in writers {
        counts.merge(&writer.counts);
    }
    let answer = json!({
        "files": counts.files,
        "bytes": operation.bytes,
        "directories": counts.directories,
        "symlinks": counts.symlinks,
        "hard_links": linked.links,
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
    left_out: u64,
}

impl Counts {
    fn merge(&mut self, other: &Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.symlinks += other.symlinks;
        self.left_out += other.left_out;
    }
}

/// A directory of the mirror, and the attributes that it gets when it is complete.
#[derive(Debug)]
struct Place {
    /// `None` if too many directories are open.
    descriptor: Option<Handle>,
    attributes: Attributes,
    /// Whether hard links are added to it or below it at the end. It gets its attributes after that.
    waits: AtomicBool,
}

/// A descriptor that is still open, or that was opened again.
enum Reached<'a> {
    Open(&'a Handle),
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

/// The visitor of one thread.
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
        sys::open_within(&self.mirror.root, &node.relative_path()).map(Reached::Again)
    }

    /// Create a symbolic link, a pipe or a socket. Other files are skipped and counted.
    fn special(&mut self, directory: &Directory<'_, Place>, entry: &Entry<'_>, into: &Reached<'_>) -> Visit {
        let attributes = Attributes::of(directory.handle, entry.name).tried("stat")?;
        let permissions = Mode::from_raw_mode(attributes.permissions);
        let made = match entry.kind {
            FileType::Symlink => {
                let target =
                    rustix::fs::readlinkat(directory.handle, entry.name, Vec::new()).tried("read link")?;
                rustix::fs::symlinkat(target, into, entry.name)
            }
            FileType::Fifo | FileType::Socket => {
                rustix::fs::mknodat(into, entry.name, entry.kind, permissions, 0)
            }
            _ => {
                self.counts.left_out += 1;
                return Ok(());
            }
        };
        made.map_err(|errno| self.mirror.trouble("create", errno, directory.node, entry.name))?;
        self.counts.symlinks += u64::from(entry.kind == FileType::Symlink);
        copy::give_attributes_by_name(into, entry.name, &attributes, self.mirror).tried("set times of")
    }
}

impl Visitor for Writer<'_> {
    type Data = Place;

    fn root(&mut self, tree: &Tree, _recorder: &mut Recorder<'_>) -> Visit<Place> {
        let attributes = Attributes::of_open(tree.root()).tried("stat")?;
        let descriptor = tree.keep(|| rustix::io::fcntl_dupfd_cloexec(&self.mirror.root, 0)).tried("open")?;
        self.counts.directories += 1;
        Ok(Place { descriptor, attributes, waits: AtomicBool::new(false) })
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
        let descriptor = parent.tree.keep(|| sys::open_directory(&into, name));
        let descriptor =
            descriptor.map_err(|errno| self.mirror.trouble("open directory", errno, parent.node, name))?;
        recorder.lap(Syscall::Open);
        self.counts.directories += 1;
        Ok(Some(Place { descriptor, attributes, waits: AtomicBool::new(false) }))
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
        if self.copier.copy(mirror, directory, entry, &into, recorder)? {
            self.counts.files += 1;
            recorder.end(0);
        }
        Ok(())
    }

    fn leave(&mut self, _tree: &Tree, node: &Node<Place>, recorder: &mut Recorder<'_>) -> Visit {
        if node.data.waits.load(Ordering::Relaxed) {
            self.mirror.links.put_off(node)?;
            return Ok(());
        }
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
