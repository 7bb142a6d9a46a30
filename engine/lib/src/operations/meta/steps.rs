//! The system calls of each step.

use std::ffi::CStr;

use rustix::fs::{AtFlags, Mode, OFlags};
use serde::Serialize;

use crate::error::{Context, Error, Result};
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::sys;
use crate::walk::{Dents, entries};
use crate::workset::{File, Files, WorkSet};

/// First letters of the names of files, hard links, symbolic links, renamed files and directories.
pub(super) const FILE: u8 = b'f';
const LINK: u8 = b'l';
const SYMLINK: u8 = b's';
const RENAMED: u8 = b'r';
const DIRECTORY: u8 = b'm';
/// Size in bytes that `truncate` gives a file.
const TRUNCATED: u64 = 4096;

/// A step of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Create with `O_EXCL`, and close.
    Create,
    /// Open to read, and close.
    OpenClose,
    /// Read type, size and times.
    Stat,
    /// Change the permissions.
    Chmod,
    /// Extend the file to 4 KiB with a hole.
    Truncate,
    /// Rename the file; the old name is restored afterwards, not measured.
    Rename,
    /// Create a hard link; the links are removed afterwards, not measured.
    Link,
    /// Create a symbolic link; the links are removed afterwards, not measured.
    Symlink,
    /// List each directory completely: one operation per directory.
    Readdir,
    /// Create one directory per file.
    Mkdir,
    /// Remove the directories that mkdir created.
    Rmdir,
    /// Remove the file.
    Unlink,
}

impl Step {
    /// All steps in the usual order.
    pub const ALL: [Self; 12] = [
        Self::Create,
        Self::OpenClose,
        Self::Stat,
        Self::Chmod,
        Self::Truncate,
        Self::Rename,
        Self::Link,
        Self::Symlink,
        Self::Readdir,
        Self::Mkdir,
        Self::Rmdir,
        Self::Unlink,
    ];

    /// Return the name used in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::OpenClose => "open-close",
            Self::Stat => "stat",
            Self::Chmod => "chmod",
            Self::Truncate => "truncate",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Symlink => "symlink",
            Self::Readdir => "readdir",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
            Self::Unlink => "unlink",
        }
    }

    pub(super) fn changes_the_file_system(self) -> bool {
        !matches!(self, Self::OpenClose | Self::Stat | Self::Readdir)
    }
}

/// Run a step on the share of one worker. The tuple contains the number of the worker, its files and its buffer for
/// directory listings.
pub(super) fn work(
    set: &WorkSet,
    step: Step,
    (worker, files, mut dents): (usize, Files, Dents),
    recorder: &mut Recorder<'_>,
) -> Result<()> {
    match step {
        Step::Create => set.each(&files, recorder, create),
        Step::OpenClose => set.each(&files, recorder, open_close),
        Step::Stat => set.each(&files, recorder, stat),
        Step::Chmod => set.each(&files, recorder, chmod),
        Step::Truncate => set.each(&files, recorder, truncate),
        Step::Rename => set.each(&files, recorder, |recorder, file| {
            rename(file, FILE, RENAMED)?;
            recorder.end_sole(Syscall::Rename, 0);
            Ok(())
        }),
        Step::Link => set.each(&files, recorder, link),
        Step::Symlink => set.each(&files, recorder, symlink),
        Step::Readdir => readdir(set, worker, &mut dents, recorder),
        Step::Mkdir => set.each(&files, recorder, mkdir),
        Step::Rmdir => set.each(&files, recorder, rmdir),
        Step::Unlink => set.each(&files, recorder, unlink),
    }
}

/// Remove what a step created beside the files. After a rename, restore the names of the files.
pub(super) fn clean_up(set: &WorkSet, step: Step) -> Result<()> {
    let letter = match step {
        Step::Link => LINK,
        Step::Symlink => SYMLINK,
        Step::Rename => return set.for_all(|file| rename(file, RENAMED, FILE)),
        _ => return Ok(()),
    };
    set.for_all(|file| {
        rustix::fs::unlinkat(file.directory, file.name(letter).as_c_str(), AtFlags::empty())
            .context("remove", || file.path(letter))
    })
}

fn create(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let name = file.name(FILE);
    let opened = rustix::fs::openat(file.directory, name.as_c_str(), sys::OPEN_NEW, sys::FILE_MODE)
        .context("create", || file.path(FILE))?;
    recorder.lap(Syscall::Open);
    drop(opened);
    recorder.lap(Syscall::Close);
    recorder.end(0);
    Ok(())
}

fn open_close(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let name = file.name(FILE);
    let opened = rustix::fs::openat(file.directory, name.as_c_str(), sys::OPEN_READ, Mode::empty())
        .context("open", || file.path(FILE))?;
    recorder.lap(Syscall::Open);
    drop(opened);
    recorder.lap(Syscall::Close);
    recorder.end(0);
    Ok(())
}

fn stat(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let name = file.name(FILE);
    rustix::fs::statat(file.directory, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
        .context("stat", || file.path(FILE))?;
    recorder.end_sole(Syscall::Stat, 0);
    Ok(())
}

/// Change the permissions by name. `fchmodat` follows symbolic links, and has no flag to prevent that before Linux 6.6.
/// This is safe here: the work directory belongs to this user, and create made the file in it with `O_EXCL`.
fn chmod(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let name = file.name(FILE);
    rustix::fs::chmodat(file.directory, name.as_c_str(), Mode::from_raw_mode(0o640), AtFlags::empty())
        .context("chmod", || file.path(FILE))?;
    recorder.end_sole(Syscall::Chmod, 0);
    Ok(())
}

fn truncate(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let (name, flags) = (file.name(FILE), OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC);
    let opened = rustix::fs::openat(file.directory, name.as_c_str(), flags, Mode::empty())
        .context("open", || file.path(FILE))?;
    recorder.lap(Syscall::Open);
    rustix::fs::ftruncate(&opened, TRUNCATED).context("truncate", || file.path(FILE))?;
    recorder.lap(Syscall::Truncate);
    drop(opened);
    recorder.lap(Syscall::Close);
    recorder.end(0);
    Ok(())
}

fn rename(file: &File<'_>, from: u8, to: u8) -> Result<()> {
    let (old, new) = (file.name(from), file.name(to));
    rustix::fs::renameat(file.directory, old.as_c_str(), file.directory, new.as_c_str())
        .context("rename", || file.path(from))
}

fn link(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let (old, new) = (file.name(FILE), file.name(LINK));
    rustix::fs::linkat(file.directory, old.as_c_str(), file.directory, new.as_c_str(), AtFlags::empty())
        .context("link", || file.path(LINK))?;
    recorder.end_sole(Syscall::Link, 0);
    Ok(())
}

fn symlink(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let (target, name) = (file.name(FILE), file.name(SYMLINK));
    rustix::fs::symlinkat(target.as_c_str(), file.directory, name.as_c_str())
        .context("symlink", || file.path(SYMLINK))?;
    recorder.end_sole(Syscall::Symlink, 0);
    Ok(())
}

fn readdir(set: &WorkSet, worker: usize, dents: &mut Dents, recorder: &mut Recorder<'_>) -> Result<()> {
    for number in set.shape().share_of_directories(worker) {
        recorder.check()?;
        recorder.begin();
        let directory = set.open_directory(number)?;
        recorder.lap(Syscall::Open);
        loop {
            let bytes = dents.read(&directory).context("list", || set.path_of_directory(number))?;
            recorder.lap(Syscall::Readdir);
            if entries(bytes).count() == 0 {
                break;
            }
        }
        drop(directory);
        recorder.lap(Syscall::Close);
        recorder.end(0);
    }
    Ok(())
}

fn mkdir(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    let name = file.name(DIRECTORY);
    rustix::fs::mkdirat(file.directory, name.as_c_str(), sys::DIRECTORY_MODE)
        .context("create directory", || file.path(DIRECTORY))?;
    recorder.end_sole(Syscall::Mkdir, 0);
    Ok(())
}

fn rmdir(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    remove(file, file.name(DIRECTORY).as_c_str(), AtFlags::REMOVEDIR, DIRECTORY)?;
    recorder.end_sole(Syscall::Rmdir, 0);
    Ok(())
}

fn unlink(recorder: &mut Recorder<'_>, file: &File<'_>) -> Result<()> {
    remove(file, file.name(FILE).as_c_str(), AtFlags::empty(), FILE)?;
    recorder.end_sole(Syscall::Unlink, 0);
    Ok(())
}

fn remove(file: &File<'_>, name: &CStr, flags: AtFlags, letter: u8) -> Result<()> {
    rustix::fs::unlinkat(file.directory, name, flags)
        .map_err(|errno| Error::system("remove", file.path(letter), errno))
}
