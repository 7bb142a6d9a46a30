//! The flowops `deletefile`, `statfile`, `fsync`, `fsyncset`, `makedir`, `removedir` and `listdir`.

use rustix::fs::{AtFlags, RawDir};
use rustix::io::Errno;

use crate::fileset::{Closed, Fate, Taken, Wanted, ended};
use crate::program::Flowop;
use fslab_engine::error::{Context, Error, Result};
use fslab_engine::measure::clock::now_ns;
use fslab_engine::sys;

use super::slots::SlotId;
use super::worker::{Next, Worker};

/// Size of the buffer for getdents64(2), in bytes.
const ENTRIES: usize = 32 << 10;

impl Worker<'_> {
    pub(super) fn delete_file(&mut self, flowop: &Flowop) -> Result<Next> {
        let id = SlotId::Numbered(flowop.with.fd);
        let own = if flowop.with.fd > 0 { self.slots.at(id).entry.take() } else { None };
        let (fileset, file, state) = if let Some((fileset, file)) = own {
            let files = &self.fileset(fileset).files;
            let Some(state) = files.take(file, || self.shared.over()) else {
                self.slots.at(id).entry = own; // it is still open, and is given back at the end
                return Ok(Next::On);
            };
            (fileset, file, state)
        } else {
            let Some(fileset) = flowop.with.fileset else {
                return Self::wrong(flowop, "its descriptor has no file, and it names no fileset");
            };
            let files = &self.fileset(fileset).files;
            let index = self.drawn_index(&flowop.with, files.len());
            match files.pick_closed(index, || self.shared.over()) {
                Closed::This(file) => (fileset, file, Taken { exists: true, opened: 0 }),
                Closed::AllOpen => return Ok(Next::On),
                Closed::None => return Ok(Next::NoFile),
            }
        };
        let set = self.fileset(fileset);
        let open_here = own.is_some() && self.slots.at(id).open.is_some();
        // Skip a file that is also open elsewhere, or that another thread has deleted meanwhile.
        if state.opened > u32::from(open_here) || !state.exists {
            set.files.give_back(file, Fate::Unchanged);
            if open_here {
                self.slots.at(id).entry = own;
            }
            return Ok(Next::On);
        }
        let start = now_ns();
        let done = set.at_file(file, |at, name| rustix::fs::unlinkat(at, ended(name), AtFlags::empty()));
        match done {
            Ok(()) => {
                self.record(flowop, start, 0);
                set.files.give_back(file, Fate::Gone);
                self.slots.at(id).open.take_if(|_| open_here);
                Ok(Next::On)
            }
            Err(errno) => {
                set.files.give_back(file, Fate::Unchanged);
                Err(Error::system("delete", set.path_of(file), errno))
            }
        }
    }

    pub(super) fn stat_file(&mut self, flowop: &Flowop) -> Result<Next> {
        if flowop.with.fd > 0 {
            let slot = self.slots.at(SlotId::Numbered(flowop.with.fd));
            if let Some(open) = &slot.open {
                let start = now_ns();
                rustix::fs::fstat(&open.file).context("stat", || flowop.label.clone())?;
                self.record(flowop, start, 0);
                return Ok(Next::On);
            }
        }
        let Some(fileset) = flowop.with.fileset else {
            return Self::wrong(flowop, "its descriptor is not open, and it names no fileset");
        };
        let Some(file) = self.pick(&flowop.with, fileset, Wanted::Existing) else {
            return Ok(Next::NoFile);
        };
        let set = self.fileset(fileset);
        let start = now_ns();
        let found =
            set.at_file(file, |at, name| rustix::fs::statat(at, ended(name), AtFlags::SYMLINK_NOFOLLOW));
        if found.is_ok() {
            self.record(flowop, start, 0);
        }
        set.files.give_back(file, Fate::Unchanged);
        found.context("stat", || set.path_of(file))?;
        Ok(Next::On)
    }

    pub(super) fn fsync(&mut self, flowop: &Flowop) -> Result<Next> {
        let id = self.slots.numbered(&flowop.with);
        let Some(open) = &self.slots.at(id).open else {
            return Self::wrong(flowop, "its descriptor is not open");
        };
        let start = now_ns();
        rustix::fs::fsync(&open.file).context("fsync", || flowop.label.clone())?;
        self.record(flowop, start, 0);
        Ok(Next::On)
    }

    /// Call fsync(2) for each file of the fileset that this thread has open. Each call is recorded as one operation.
    pub(super) fn fsync_set(&mut self, flowop: &Flowop) -> Result<Next> {
        let of_set = |slot: &&mut super::slots::Slot| slot.entry.map(|entry| entry.0) == flowop.with.fileset;
        let open: Vec<_> = self
            .slots
            .all()
            .filter(of_set)
            .filter_map(|slot| slot.open.as_ref().map(|open| std::sync::Arc::clone(&open.file)))
            .collect();
        for file in open {
            let start = now_ns();
            rustix::fs::fsync(&file).context("fsync", || flowop.label.clone())?;
            self.record(flowop, start, 0);
        }
        Ok(Next::On)
    }

    pub(super) fn make_directory(&mut self, flowop: &Flowop) -> Result<Next> {
        self.leaf_directory(flowop, Wanted::Missing)
    }

    pub(super) fn remove_directory(&mut self, flowop: &Flowop) -> Result<Next> {
        self.leaf_directory(flowop, Wanted::Existing)
    }

    fn leaf_directory(&mut self, flowop: &Flowop, wanted: Wanted) -> Result<Next> {
        let Some(fileset) = flowop.with.fileset else { return Self::wrong(flowop, "it names no fileset") };
        let set = self.fileset(fileset);
        let index = self.drawn_index(&flowop.with, set.leaf_directories.len());
        let Some(leaf) = set.leaf_directories.pick(wanted, index, 0, || self.shared.over()) else {
            return Ok(Next::NoFile);
        };
        let start = now_ns();
        let done = set.at_leaf_directory(leaf, |at, name| match wanted {
            Wanted::Missing => rustix::fs::mkdirat(at, ended(name), sys::DIRECTORY_MODE),
            Wanted::Existing => rustix::fs::unlinkat(at, ended(name), AtFlags::REMOVEDIR),
        });
        let (fate, action) = match wanted {
            Wanted::Missing => (Fate::Exists, "create directory"),
            Wanted::Existing => (Fate::Gone, "remove directory"),
        };
        if done.is_ok() {
            self.record(flowop, start, 0);
        }
        set.leaf_directories.give_back(leaf, if done.is_ok() { fate } else { Fate::Unchanged });
        done.context(action, || set.path_of_leaf_directory(leaf))?;
        Ok(Next::On)
    }

    pub(super) fn list_directory(&mut self, flowop: &Flowop) -> Result<Next> {
        let Some(fileset) = flowop.with.fileset else { return Self::wrong(flowop, "it names no fileset") };
        let set = self.fileset(fileset);
        let directory = set.pick_directory();
        let mut buffer = Vec::with_capacity(ENTRIES);
        let start = now_ns();
        let listed = set.in_directory(directory, |at| -> Result<u64, Errno> {
            let opened = sys::open_directory(at, c".")?;
            let mut entries = RawDir::new(&opened, buffer.spare_capacity_mut());
            let mut bytes = 0;
            while let Some(entry) = entries.next() {
                // The size of a `linux_dirent64` without padding: a header of 19 bytes, the name and its NUL.
                bytes += entry?.file_name().to_bytes().len() as u64 + 20;
            }
            Ok(bytes)
        });
        let bytes = listed.context("list", || set.path.clone())?;
        self.record(flowop, start, bytes);
        Ok(Next::On)
    }
}
