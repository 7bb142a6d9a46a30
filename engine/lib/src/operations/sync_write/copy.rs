//! Copying of one regular file.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::{Method, Mirror, Parameters, Place, Reached, Sync};
use crate::attributes::Attributes;
use crate::buffer::AlignedBuffer;
use crate::error::{Error, Result};
use crate::measure::recorder::Recorder;
use crate::measure::syscall::Syscall;
use crate::sys;
use crate::walk::{Directory, Entry, Tried, Trouble, Visit};

/// Maximum number of bytes per `copy_file_range` call, so that a signal is noticed soon.
const RANGE: usize = 64 << 20;

/// Copier of regular files, with its own buffer.
pub(super) struct Copier<'a> {
    parameters: &'a Parameters,
    buffer: AlignedBuffer,
}

impl<'a> Copier<'a> {
    pub(super) fn new(parameters: &'a Parameters) -> Result<Self> {
        Ok(Self { parameters, buffer: AlignedBuffer::new(parameters.buffer_bytes)? })
    }

    /// Copy a file. Returns false if it is a further name of a file with hard links; that name is created at the end.
    pub(super) fn copy(
        &mut self,
        mirror: &Mirror<'_>,
        directory: &Directory<'_, Place>,
        entry: &Entry<'_>,
        into: &Reached<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit<bool> {
        let flags = sys::OPEN_READ | OFlags::NONBLOCK;
        let source = rustix::fs::openat(directory.handle, entry.name, flags, Mode::empty()).tried("open")?;
        recorder.lap(Syscall::Open);
        let attributes = Attributes::of_open(&source).tried("stat")?;
        recorder.lap(Syscall::Stat);
        if attributes.links > 1 && mirror.links.defer(attributes.id, directory.node, entry.name)? {
            return Ok(false);
        }
        let mode = Mode::from_raw_mode(attributes.permissions & 0o777);
        let failed = |action| move |errno| mirror.trouble(action, errno, directory.node, entry.name);
        let room = mirror.room.as_ref().map_or(Ok(()), |room| room.take(&mirror.root, attributes.size));
        let target = room
            .map_err(failed("make room for"))
            .and_then(|()| {
                rustix::fs::openat(into, entry.name, sys::OPEN_NEW, mode).map_err(failed("create"))
            })
            .inspect_err(|trouble| mirror.links.forget(attributes.id, trouble))?;
        recorder.lap(Syscall::Open);
        let copied = self.fill(&source, &target, &attributes, mirror, &failed, recorder);
        if let Err(trouble) = &copied {
            // Remove the incomplete file, so that it is not taken for a complete one, and create no links to it.
            let _ = rustix::fs::unlinkat(into, entry.name, AtFlags::empty());
            mirror.links.forget(attributes.id, trouble);
        }
        copied?;
        drop(target);
        recorder.lap(Syscall::Close);
        drop(source);
        recorder.lap(Syscall::Close);
        Ok(true)
    }

    /// Write contents and attributes of a new file, and call `fsync` on it if requested.
    fn fill<F: FnOnce(Errno) -> Trouble>(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        attributes: &Attributes,
        mirror: &Mirror<'_>,
        failed: &impl Fn(&'static str) -> F,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        let mut progress = sys::Progress::new(attributes.size);
        match self.parameters.method {
            Method::ReadWrite => self.read_write(source, target, &mut progress, failed, recorder)?,
            Method::CopyFileRange => copy_range(source, target, &mut progress, failed, recorder)?,
            Method::Reflink => {
                let cloned = rustix::fs::ioctl_ficlone(target, source);
                cloned
                    .map_err(|errno| unable("reflink", errno).unwrap_or_else(|| failed("reflink")(errno)))?;
                recorder.lap(Syscall::Copy);
                recorder.moved(usize::try_from(attributes.size).unwrap_or(usize::MAX));
            }
        }
        give_attributes(target, attributes, mirror, false).map_err(failed("set times of"))?;
        recorder.lap(Syscall::Utime);
        if matches!(self.parameters.sync, Sync::File | Sync::Directory) {
            rustix::fs::fsync(target).map_err(failed("fsync"))?;
            recorder.lap(Syscall::Fsync);
        }
        Ok(())
    }

    fn read_write<F: FnOnce(Errno) -> Trouble>(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        progress: &mut sys::Progress,
        failed: &impl Fn(&'static str) -> F,
        recorder: &mut Recorder<'_>,
    ) -> Visit {
        let buffer = self.buffer.as_mut();
        loop {
            let (count, over) = progress.read(source, buffer).tried("read all of")?;
            recorder.lap(Syscall::Read);
            if count > 0 {
                sys::write_all(target, &buffer[..count]).map_err(failed("write"))?;
                recorder.lap(Syscall::Write);
                recorder.moved(count);
            }
            if over {
                return Ok(());
            }
            recorder.check()?;
        }
    }
}

fn copy_range<F: FnOnce(Errno) -> Trouble>(
    source: &OwnedFd,
    target: &OwnedFd,
    progress: &mut sys::Progress,
    failed: &impl Fn(&'static str) -> F,
    recorder: &mut Recorder<'_>,
) -> Visit {
    loop {
        let copied = match rustix::fs::copy_file_range(source, None, target, None, RANGE) {
            Err(Errno::INTR) => continue,
            other => other
                .map_err(|errno| unable("copy_file_range", errno).unwrap_or_else(|| failed("copy")(errno)))?,
        };
        recorder.lap(Syscall::Copy);
        recorder.moved(copied);
        if progress.advance(copied).tried("copy all of")? {
            return Ok(());
        }
        recorder.check()?;
    }
}

/// Return a fatal error if no file can be copied with this method, because one error per file would add no information.
/// Returns `None` for other errors.
fn unable(method: &str, errno: Errno) -> Option<Trouble> {
    let why = match errno {
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS => "the file system does not support it",
        Errno::XDEV => "source and destination are on different file systems",
        _ => return None,
    };
    Some(Trouble::Fatal(Error::Invalid(format!("cannot copy with {method}: {why}; use --method read-write"))))
}

/// Set owner (as root), permissions and times of a new file. The permissions come after the owner, because `fchown`
/// clears the set-user-ID bit. They are set only if creation has not set them already, or with `always_permissions`.
pub(super) fn give_attributes(
    file: impl AsFd,
    attributes: &Attributes,
    mirror: &Mirror<'_>,
    always_permissions: bool,
) -> rustix::io::Result<()> {
    let foreign = mirror.privileged && (attributes.uid, attributes.gid) != (0, 0);
    if foreign {
        let (uid, gid) = (Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid));
        rustix::fs::fchown(&file, Some(uid), Some(gid))?;
    }
    let masked = attributes.permissions & (mirror.umask | 0o7000) != 0;
    if masked || always_permissions {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(attributes.permissions))?;
    }
    rustix::fs::futimens(&file, &times(attributes))
}

/// Set the attributes of a file that cannot be opened: a symbolic link, a pipe or a socket.
pub(super) fn give_attributes_by_name(
    directory: impl AsFd,
    name: &CStr,
    attributes: &Attributes,
    mirror: &Mirror<'_>,
) -> rustix::io::Result<()> {
    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
    if mirror.privileged && (attributes.uid, attributes.gid) != (0, 0) {
        let (uid, gid) = (Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid));
        rustix::fs::chownat(&directory, name, Some(uid), Some(gid), nofollow)?;
    }
    if attributes.kind != FileType::Symlink && attributes.permissions & (mirror.umask | 0o7000) != 0 {
        // Before Linux 6.6, permissions can be changed by name only if symbolic links are followed. The name in
        // /proc/self/fd always refers to the opened file, even if its own name has been replaced.
        let opened = rustix::fs::openat(&directory, name, OFlags::PATH | sys::OPEN_READ, Mode::empty())?;
        let own = format!("/proc/self/fd/{}", opened.as_raw_fd());
        rustix::fs::chmod(own, Mode::from_raw_mode(attributes.permissions))?;
    }
    rustix::fs::utimensat(&directory, name, &times(attributes), nofollow)
}

/// Return the times in the form in which they are set.
fn times(attributes: &Attributes) -> Timestamps {
    let at = |(seconds, nanoseconds): (i64, u32)| Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    Timestamps { last_access: at(attributes.accessed), last_modification: at(attributes.modified) }
}
