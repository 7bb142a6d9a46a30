//! The files of a tree and what is needed to open each of them again: 40 bytes and the name per file.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags};

use super::DuplicateSet;
use crate::attributes::Attributes;
use crate::error::Result;
use crate::fast_map::FileId;
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::memory;
use crate::sys;
use crate::walk::{Directory, Entry, Handle, Tree, Tried, Visit, Visitor};

/// Purpose of the memory, for error messages.
const LIST: &str = "the list of all files";

/// A file.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    pub(super) size: u64,
    pub(super) id: FileId,
    pub(super) directory: u32,
    /// Offset of its name in the list of names.
    name: usize,
}

/// A directory: the number of its parent and its name.
struct Branch {
    parent: u32,
    name: Box<CStr>,
}

/// State shared by all threads.
pub(super) struct Shared {
    minimum: u64,
    directories: Mutex<Vec<Branch>>,
}

impl Shared {
    pub(super) fn new(minimum: u64) -> Self {
        Self { minimum: minimum.max(1), directories: Mutex::default() }
    }

    fn add(&self, parent: u32, name: &CStr) -> Result<u32> {
        let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        memory::grow("the list of all directories", &mut directories, 1)?;
        directories.push(Branch { parent, name: name.into() });
        Ok(u32::try_from(directories.len() - 1).expect("four thousand million directories fit in no memory"))
    }
}

/// The visitor of one thread.
pub(super) struct Collector<'a> {
    shared: &'a Shared,
    files: Vec<File>,
    names: Vec<u8>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self { shared, files: Vec::new(), names: Vec::new() }
    }

    /// Return the files and their names.
    pub(super) fn into_parts(self) -> (Vec<File>, Vec<u8>) {
        (self.files, self.names)
    }
}

impl Visitor for Collector<'_> {
    /// Number of the directory.
    type Data = u32;

    fn root(&mut self, _tree: &Tree, _recorder: &mut Recorder<'_>) -> Visit<u32> {
        Ok(self.shared.add(0, c"")?)
    }

    fn enter(
        &mut self,
        parent: &Directory<'_, u32>,
        name: &CStr,
        _opened: &Handle,
        _recorder: &mut Recorder<'_>,
    ) -> Visit<Option<u32>> {
        Ok(Some(self.shared.add(parent.node.data, name)?))
    }

    fn file(
        &mut self,
        directory: &Directory<'_, u32>,
        entry: &Entry<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        if entry.kind != FileType::RegularFile {
            return Ok(());
        }
        let attributes = Attributes::of(directory.handle, entry.name).tried("stat")?;
        recorder.end_sole(Syscall::Stat, 0);
        if attributes.kind == FileType::RegularFile && attributes.size >= self.shared.minimum {
            let (name, bytes) = (self.names.len(), entry.name.to_bytes_with_nul());
            memory::grow(LIST, &mut self.names, bytes.len())?;
            memory::grow(LIST, &mut self.files, 1)?;
            self.names.extend(bytes);
            let (size, id) = (attributes.size, attributes.id);
            self.files.push(File { size, id, directory: directory.node.data, name });
        }
        Ok(())
    }
}

/// The files that may have duplicates.
pub(super) struct Files {
    tree: Tree,
    directories: Vec<Branch>,
    names: Vec<u8>,
    pub(super) list: Vec<File>,
}

impl Files {
    pub(super) fn new(tree: Tree, parts: Vec<(Vec<File>, Vec<u8>)>, shared: Shared) -> Result<Self> {
        let mut parts = parts.into_iter();
        let (mut files, mut names) = parts.next().unwrap_or_default();
        for (its_files, its_names) in parts {
            let start = names.len();
            memory::grow(LIST, &mut names, its_names.len())?;
            memory::grow(LIST, &mut files, its_files.len())?;
            names.extend(its_names);
            files.extend(its_files.into_iter().map(|file| File { name: file.name + start, ..file }));
        }
        let directories = shared.directories.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self { tree, directories, names, list: files })
    }

    /// Return the sum of all file sizes in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.list.iter().map(|file| file.size).sum()
    }

    /// Keep one name of each file, and only files whose size occurs more than once. Returns the number of further hard
    /// links. Afterwards, the files are sorted by directory and inode number.
    pub(super) fn keep_same_sizes(&mut self) -> Result<u64> {
        let files = &mut self.list;
        files.sort_unstable_by_key(|file| (file.size, file.id, file.directory, file.name));
        let before = files.len();
        files.dedup_by_key(|file| file.id);
        let hard_links = before - files.len();
        let groups = files.chunk_by(|a, b| a.size == b.size).filter(|group| group.len() > 1);
        let mut kept = memory::room_for(LIST, groups.clone().map(|group| group.len() as u64).sum())?;
        kept.extend(groups.flatten().copied());
        kept.sort_unstable_by_key(|file: &File| (file.directory, file.id));
        self.list = kept;
        Ok(hard_links as u64)
    }

    fn directory_path(&self, mut index: u32) -> Vec<u8> {
        let mut names = Vec::new();
        while index != 0 {
            let branch = &self.directories[index as usize];
            names.push(branch.name.to_bytes());
            index = branch.parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    fn name(&self, file: &File) -> &CStr {
        CStr::from_bytes_until_nul(&self.names[file.name..]).expect("every name was noted with its NUL")
    }

    /// Return the path of a file relative to the top directory.
    fn relative_path(&self, file: &File) -> Vec<u8> {
        let mut path = self.directory_path(file.directory);
        path.extend((!path.is_empty()).then_some(b'/'));
        path.extend(self.name(file).to_bytes());
        path
    }

    /// Return the path of a file for messages, starting with the path of the top directory.
    pub(super) fn path(&self, index: u32) -> PathBuf {
        let path = self.relative_path(&self.list[index as usize]);
        self.tree.path().join(OsStr::from_bytes(&path))
    }

    /// Return these files as a set of the answer. Panics if there are none.
    pub(super) fn set(&self, members: &[u32]) -> DuplicateSet {
        let files = members.iter().map(|&index| &self.list[index as usize]);
        let size = self.list[members[0] as usize].size;
        DuplicateSet::new(size, files.map(|file| self.relative_path(file)).collect())
    }

    /// Open a file for reading. `last` keeps its directory open for the next file.
    pub(super) fn open(&self, last: &mut LastDirectory, index: u32) -> rustix::io::Result<OwnedFd> {
        let file = &self.list[index as usize];
        let directory = match last.0.take() {
            Some((number, descriptor)) if number == file.directory => descriptor,
            _ => self.open_directory(file.directory)?,
        };
        let (_, directory) = last.0.insert((file.directory, directory));
        rustix::fs::openat(directory, self.name(file), sys::OPEN_READ | OFlags::NONBLOCK, Mode::empty())
    }

    fn open_directory(&self, index: u32) -> rustix::io::Result<OwnedFd> {
        sys::open_beneath(self.tree.root(), &self.directory_path(index))
    }
}

/// The directory that a thread opened last.
#[derive(Debug, Default)]
pub(super) struct LastDirectory(Option<(u32, OwnedFd)>);
