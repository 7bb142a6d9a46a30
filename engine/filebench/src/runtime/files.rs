//! The flowops `openfile`, `createfile` and `closefile`, and the choice of files for all flowops.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;

use crate::fileset::{Fate, Fileset, Name, Wanted, ended};
use crate::program::{Access, Arguments, Flowop};
use fslab_engine::direct::{self, Alignment};
use fslab_engine::error::{Context, Result};
use fslab_engine::measure::clock::now_ns;

use super::slots::{Open, SlotId};
use super::worker::{Next, Worker};

impl<'a> Worker<'a> {
    pub(super) fn fileset(&self, number: usize) -> &'a Fileset {
        &self.shared.filesets[number]
    }

    /// Return the slot of the descriptor that a flowop uses.
    pub(super) fn slot_id(&mut self, flowop: &Flowop) -> SlotId {
        let with = &flowop.with;
        match with.fileset {
            Some(fileset) if with.open_next && with.fd == 0 => {
                let entries = self.fileset(fileset).files.len();
                self.slots.next_turn(fileset, entries)
            }
            _ => self.slots.numbered(with),
        }
    }

    /// Open the file of a slot, unless it is open. Return false if there is no file to open, and an error if the open
    /// descriptor belongs to another fileset than the flowop's.
    pub(super) fn ensure_open(&mut self, flowop: &Flowop, id: SlotId) -> Result<bool> {
        if let SlotId::Numbered(_) = id {
            let entry = self.slots.at(id).entry;
            if let (Some((open, _)), Some(wanted)) = (entry, flowop.with.fileset) {
                if self.slots.at(id).open.is_some() && open != wanted {
                    return Self::wrong(flowop, "its descriptor belongs to another fileset");
                }
            }
        }
        if let Some(open) = &self.slots.at(id).open {
            if let Some(attribute) = flowop.with.opening.missing_in(open.opening) {
                self.shared.no_effect.get_or_init(|| format!("{attribute} of {}", flowop.label));
            }
            return Ok(true);
        }
        Ok(self.open_one(flowop, id, Wanted::Existing)?.is_some())
    }

    /// Take a file as the arguments of the flowop say. Return `None` if there is none or the run is over.
    pub(super) fn pick(&mut self, with: &Arguments, fileset: usize, wanted: Wanted) -> Option<usize> {
        let files = &self.fileset(fileset).files;
        let (index, turn) = self.next_of(with, files.len());
        files.pick(wanted, index, turn, || self.shared.over())
    }

    /// Return the index from which a flowop picks a file, if it has one, and otherwise the turn that it uses: 0 for the
    /// turn that all threads share, or that of this thread with `opennext`.
    fn next_of(&mut self, with: &Arguments, length: usize) -> (Option<usize>, usize) {
        (self.drawn_index(with, length), if with.open_next { self.index + 1 } else { 0 })
    }

    /// Draw the value of `indexed` and return the number of the file that it stands for, or `None` without `indexed`.
    /// Values from 0 to 2 cover the whole fileset, as in Filebench; larger values wrap around.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    pub(super) fn drawn_index(&mut self, with: &Arguments, length: usize) -> Option<usize> {
        let index = self.sampler.draw(with.index.as_ref()?);
        Some((index * (length as f64 / 2.0)) as usize % length.max(1))
    }

    /// Pick a file, open it and put it into the slot. Return the time just before the open (by `now_ns`), so that
    /// picking is not measured. Return `None` if there is no file.
    fn open_one(&mut self, flowop: &Flowop, id: SlotId, wanted: Wanted) -> Result<Option<u64>> {
        let Some(fileset) = flowop.with.fileset else {
            return Self::wrong(flowop, "its descriptor is not open, and it names no fileset to open");
        };
        let set = self.fileset(fileset);
        let create = wanted == Wanted::Missing;
        let (index, turn) = self.next_of(&flowop.with, set.files.len());
        let over = || self.shared.over();
        let file = if create {
            set.files.pick(wanted, index, turn, over)
        } else {
            set.files.open(index, turn, over)
        };
        let Some(file) = file else { return Ok(None) };
        let start = now_ns();
        let opened = self.open_picked(flowop, set, file, create);
        match (create, opened.is_ok()) {
            (true, done) => set.files.give_back(file, if done { Fate::Opened } else { Fate::Unchanged }),
            (false, true) => {}
            (false, false) => set.files.close(file),
        }
        let action = if create { "create" } else { "open" };
        let open = opened.context(action, || set.path_of(file))?;
        let slot = self.slots.at(id);
        (slot.open, slot.entry) = (Some(open), Some((fileset, file)));
        Ok(Some(start))
    }

    fn open_picked(&self, flowop: &Flowop, set: &Fileset, file: usize, create: bool) -> Result<Open, Errno> {
        let with = &flowop.with;
        let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        flags |= match set.spec.access {
            Access::ReadWrite => OFlags::RDWR,
            Access::ReadOnly => OFlags::RDONLY,
            Access::WriteOnly => OFlags::WRONLY,
        };
        if create {
            flags |= OFlags::CREATE;
        }
        if with.opening.dsync {
            flags |= OFlags::SYNC;
        }
        let open = |flags: OFlags| {
            set.at_file(file, |at: BorrowedFd<'_>, name: &Name| {
                rustix::fs::openat(at, ended(name), flags, Mode::from_raw_mode(0o666))
            })
        };
        if with.opening.direct {
            // openat(2) fails with EINVAL if the file system does not support O_DIRECT.
            match open(flags | OFlags::DIRECT) {
                Ok(file) => {
                    if let Some(direct) = direct::alignment(&file)? {
                        return Self::opened(with, file, Some(direct));
                    }
                }
                Err(Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            }
            self.shared.not_direct.store(true, Ordering::Relaxed);
        }
        Self::opened(with, open(flags)?, None)
    }

    fn opened(with: &Arguments, file: OwnedFd, direct: Option<Alignment>) -> Result<Open, Errno> {
        if with.opening.no_readahead {
            rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
        }
        Ok(Open { file: Arc::new(file), position: 0, direct, opening: with.opening })
    }

    pub(super) fn open_file(&mut self, flowop: &Flowop) -> Result<Next> {
        let id = self.slot_id(flowop);
        self.open_measured(flowop, id, Wanted::Existing)
    }

    pub(super) fn create_file(&mut self, flowop: &Flowop) -> Result<Next> {
        let id = self.slots.numbered(&flowop.with);
        self.open_measured(flowop, id, Wanted::Missing)
    }

    fn open_measured(&mut self, flowop: &Flowop, id: SlotId, wanted: Wanted) -> Result<Next> {
        if self.slots.at(id).open.is_some() {
            return Self::wrong(flowop, "its descriptor is still open");
        }
        match self.open_one(flowop, id, wanted)? {
            Some(start) => {
                self.record(flowop, start, 0);
                Ok(Next::On)
            }
            None => Ok(Next::NoFile),
        }
    }

    pub(super) fn close_file(&mut self, flowop: &Flowop) -> Result<Next> {
        let id = self.slots.numbered(&flowop.with);
        let slot = self.slots.at(id);
        let (Some(open), Some((fileset, file))) = (slot.open.take(), slot.entry) else {
            return Self::wrong(flowop, "its descriptor is not open");
        };
        let start = now_ns();
        drop(open);
        self.record(flowop, start, 0);
        self.fileset(fileset).files.close(file);
        Ok(Next::On)
    }
}
