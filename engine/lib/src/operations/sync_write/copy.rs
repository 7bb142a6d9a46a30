//! Copying one regular file.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::{Method, Mirror, Parameters, Place, Reached, Sync};
use crate::attributes::Attributes;
use crate::buffer::AlignedBuffer;
use crate::error::Result;
use crate::measure::recorder::{Recorder, Syscall};
use crate::sys;
use crate::walk::{Directory, Entry, Tried, Visit};

/// The largest piece that `copy_file_range` is asked for, so that a signal is soon heard.
const RANGE: usize = 64 << 20;

/// Copies files with a buffer of its own.
pub(super) struct Copier<'a> {
    parameters: &'a Parameters,
    buffer: AlignedBuffer,
}

impl<'a> Copier<'a> {
    pub(super) fn new(parameters: &'a Parameters) -> Result<Self> {
        Ok(Self { parameters, buffer: AlignedBuffer::new(parameters.buffer_bytes)? })
    }

    /// Copies a file and returns its length; `None` if it is a further name of one copied already.
    pub(super) fn copy(
        &mut self,
        mirror: &Mirror<'_>,
        directory: &Directory<'_, Place>,
        entry: &Entry<'_>,
        into: &Reached<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Visit<Option<u64>> {
        let flags = sys::OPEN_READ | OFlags::NONBLOCK;
        let source = rustix::fs::openat(directory.handle, entry.name, flags, Mode::empty()).tried("open")?;
        recorder.lap(Syscall::Open);
        let attributes = Attributes::of_open(&source).tried("stat")?;
        recorder.lap(Syscall::Stat);
        if attributes.links > 1 && mirror.links.defer(attributes.id, directory.node, entry.name) {
            return Ok(None);
        }
        let mode = Mode::from_raw_mode(attributes.permissions & 0o777);
        let failed = |action| move |errno| mirror.trouble(action, errno, directory.node, entry.name);
        if let Some(room) = &mirror.room {
            room.take(&mirror.root, attributes.size).map_err(failed("make room for"))?;
        }
        let target = rustix::fs::openat(into, entry.name, sys::OPEN_NEW, mode).map_err(failed("create"))?;
        recorder.lap(Syscall::Open);
        let length = self.contents(&source, &target, &failed, recorder)?;
        give_attributes(&target, &attributes, mirror, false).map_err(failed("set times of"))?;
        recorder.lap(Syscall::Utime);
        if self.parameters.sync == Sync::File {
            rustix::fs::fsync(&target).map_err(failed("fsync"))?;
            recorder.lap(Syscall::Fsync);
        }
        drop(target);
        recorder.lap(Syscall::Close);
        drop(source);
        recorder.lap(Syscall::Close);
        Ok(Some(length))
    }

    fn contents<F: FnOnce(Errno) -> crate::walk::Trouble>(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        failed: &impl Fn(&'static str) -> F,
        recorder: &mut Recorder<'_>,
    ) -> Visit<u64> {
        match self.parameters.method {
            Method::ReadWrite => self.read_write(source, target, failed, recorder),
            Method::CopyFileRange => copy_range(source, target, failed, recorder),
            Method::Reflink => {
                rustix::fs::ioctl_ficlone(target, source).map_err(failed("reflink"))?;
                recorder.lap(Syscall::Copy);
                Attributes::of_open(target).map(|attributes| attributes.size).map_err(failed("stat"))
            }
        }
    }

    fn read_write<F: FnOnce(Errno) -> crate::walk::Trouble>(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        failed: &impl Fn(&'static str) -> F,
        recorder: &mut Recorder<'_>,
    ) -> Visit<u64> {
        let buffer = self.buffer.as_mut();
        let mut length = 0;
        loop {
            let count = sys::read_some(source, buffer).tried("read")?;
            recorder.lap(Syscall::Read);
            if count > 0 {
                sys::write_all(target, &buffer[..count]).map_err(failed("write"))?;
                recorder.lap(Syscall::Write);
            }
            length += count as u64;
            if count < buffer.len() {
                return Ok(length);
            }
            recorder.check()?;
        }
    }
}

fn copy_range<F: FnOnce(Errno) -> crate::walk::Trouble>(
    source: &OwnedFd,
    target: &OwnedFd,
    failed: &impl Fn(&'static str) -> F,
    recorder: &mut Recorder<'_>,
) -> Visit<u64> {
    let mut length = 0;
    loop {
        let copied =
            rustix::fs::copy_file_range(source, None, target, None, RANGE).map_err(failed("copy"))?;
        recorder.lap(Syscall::Copy);
        if copied == 0 {
            return Ok(length);
        }
        length += copied as u64;
        recorder.check()?;
    }
}

/// Gives a new file what the old one has: owner (as root), permissions and times, in this order,
/// because a new owner takes away the set-user-ID bit and every change touches the times.
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

/// The same for what cannot be opened: links, pipes and sockets.
pub(super) fn give_attributes_by_name(
    directory: impl AsFd,
    name: &CStr,
    attributes: &Attributes,
    privileged: bool,
) -> rustix::io::Result<()> {
    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
    if privileged && (attributes.uid, attributes.gid) != (0, 0) {
        let (uid, gid) = (Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid));
        rustix::fs::chownat(&directory, name, Some(uid), Some(gid), nofollow)?;
    }
    rustix::fs::utimensat(&directory, name, &times(attributes), nofollow)
}

/// The times, as they are set.
pub(super) fn times(attributes: &Attributes) -> Timestamps {
    let at = |(seconds, nanoseconds): (i64, u32)| Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    Timestamps { last_access: at(attributes.accessed), last_modification: at(attributes.modified) }
}
