//! Creation of the files of a fileset.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{chosen, ended};
use crate::fileset::{Fileset, Name, Pool};
use fslab_engine::contents::{BLOCK, Contents};
use fslab_engine::error::{Context, Error, Result};
use fslab_engine::measure::share::Share;
use fslab_engine::random::mix;
use fslab_engine::{memory, stop, sys};

/// Number of threads that create files with `paralloc`.
const PARALLEL: usize = 32;
/// Maximum number of bytes written at once; a multiple of [`BLOCK`].
const CHUNK: usize = 1 << 20;

impl Fileset {
    /// Create all files that exist at the start. Return their number, the number of reused files among them, and their
    /// total size in bytes.
    pub(super) fn make_files(&mut self, kept: bool) -> Result<(u64, u64, u64)> {
        let chosen = chosen(&self.spec, self.tree.files.len());
        let seed = self.spec.name.bytes().fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
        let contents = Contents::new(seed);
        let threads = if self.spec.parallel { PARALLEL.min(chosen.len()) } else { 1 };
        let share = Share::new(chosen.len(), 16);
        let (reused, failure) = (AtomicU64::new(0), Mutex::new(None));
        let work = || {
            let mut buffer = match memory::zeroed(CHUNK) {
                Ok(buffer) => buffer,
                Err(error) => {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            };
            while let Some(range) = share.take() {
                for file in range {
                    let filled = (&contents, &mut buffer[..]);
                    let made = stop::check().and_then(|()| self.make_file(file, chosen[file], kept, filled));
                    match made {
                        Ok(was_there) => {
                            reused.fetch_add(u64::from(was_there), Ordering::Relaxed);
                        }
                        Err(error) => {
                            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            return;
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let exist = |(number, _): &(usize, &bool)| chosen[*number];
        let files = chosen.iter().filter(|chosen| **chosen).count() as u64;
        let bytes = chosen.iter().enumerate().filter(exist).map(|(number, _)| self.size(number)).sum();
        self.files = Pool::new(chosen.len(), |number| chosen[number]);
        Ok((files, reused.into_inner(), bytes))
    }

    /// Create one file with its contents, or remove it if it is not wanted. Return whether a file of an earlier run was
    /// reused: it had the right size and was not empty, or the tree is trusted and the file was not checked at all.
    fn make_file(
        &self,
        file: usize,
        wanted: bool,
        kept: bool,
        (contents, buffer): (&Contents, &mut [u8]),
    ) -> Result<bool> {
        if kept && self.spec.trust && wanted {
            return Ok(true);
        }
        if !wanted {
            if kept {
                let gone =
                    self.at_file(file, |at, name| rustix::fs::unlinkat(at, ended(name), AtFlags::empty()));
                match gone {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(Error::system("remove", self.path_of(file), errno)),
                }
            }
            return Ok(false);
        }
        let size = self.size(file);
        let open = |at: BorrowedFd<'_>, name: &Name| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let flags = if kept { flags } else { flags | OFlags::EXCL };
            rustix::fs::openat(at, ended(name), flags, Mode::from_raw_mode(0o666))
        };
        let opened = self.at_file(file, open).context("create", || self.path_of(file))?;
        let found = rustix::fs::fstat(&opened).context("stat", || self.path_of(file))?;
        let found = u64::try_from(found.st_size).unwrap_or(0);
        if found > size {
            rustix::fs::ftruncate(&opened, size).context("truncate", || self.path_of(file))?;
        }
        let write = |block, piece: &mut [u8]| contents.fill(file as u64, block, piece);
        fill(&opened, found.min(size), size, buffer, write).context("write", || self.path_of(file))?;
        if self.spec.cached == Some(false) {
            rustix::fs::fdatasync(&opened).context("sync", || self.path_of(file))?;
            let _ = rustix::fs::fadvise(&opened, 0, None, Advice::DontNeed);
        }
        Ok(kept && found == size && size > 0)
    }
}

/// Write the contents from the offset `from` to the end of the file at `size`. Start at the block that contains `from`,
/// because contents are generated in whole blocks. Return EINTR if a signal asked the process to stop.
fn fill(
    file: &OwnedFd,
    from: u64,
    size: u64,
    buffer: &mut [u8],
    contents: impl Fn(u64, &mut [u8]),
) -> Result<(), Errno> {
    if from >= size {
        return Ok(());
    }
    let mut offset = from - from % BLOCK as u64;
    rustix::fs::seek(file, rustix::fs::SeekFrom::Start(offset))?;
    while offset < size {
        if stop::requested().is_some() {
            return Err(Errno::INTR);
        }
        let length = usize::try_from(size - offset).unwrap_or(usize::MAX).min(buffer.len());
        contents(offset / BLOCK as u64, &mut buffer[..length]);
        sys::write_all(file.as_fd(), &buffer[..length])?;
        offset += length as u64;
    }
    Ok(())
}
