//! File descriptors of a thread: numbered ones, and those that take turns (`opennext`).

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;

use crate::direct::{self, Alignment};
use crate::error::{Error, Result};
use crate::measure::clock::now_ns;
use crate::wml::fileset::{Fate, Fileset, Name, Wanted, ended};
use crate::wml::program::{Access, Arguments, Flowop};

use super::worker::{Next, Worker};

/// How many files each thread keeps open of a fileset that takes turns.
const TURNS: usize = 512;

/// An open file.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: Arc<OwnedFd>,
    /// Where the next piece is read or written.
    pub(super) position: u64,
    /// What `O_DIRECT` asks for; `None` if the page cache is used.
    pub(super) direct: Option<Alignment>,
}

/// A place for an open file. The file is remembered after it is closed: it can still be deleted.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) open: Option<Open>,
    pub(super) entry: Option<(usize, usize)>,
}

/// Which slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotId {
    Numbered(usize),
    /// Descriptor 0, of which each fileset has its own.
    Default(usize),
    Turn(usize, usize),
}

/// All slots of a thread.
#[derive(Debug)]
pub(super) struct Slots {
    numbered: Vec<Slot>,
    defaults: Vec<Slot>,
    /// The fileset that descriptor 0 was last used for.
    last: usize,
    turns: Vec<(Vec<Slot>, usize)>,
}

impl Slots {
    pub(super) fn new(filesets: usize) -> Self {
        let turns = (0..filesets).map(|_| (Vec::new(), 0)).collect();
        Self { numbered: Vec::new(), defaults: Vec::new(), last: 0, turns }
    }

    pub(super) fn at(&mut self, id: SlotId) -> &mut Slot {
        let (slots, number) = match id {
            SlotId::Numbered(number) => (&mut self.numbered, number),
            SlotId::Default(fileset) => (&mut self.defaults, fileset),
            SlotId::Turn(fileset, number) => (&mut self.turns[fileset].0, number),
        };
        if number >= slots.len() {
            slots.resize_with(number + 1, Slot::default);
        }
        &mut slots[number]
    }

    fn next_turn(&mut self, fileset: usize, entries: usize) -> SlotId {
        let turn = &mut self.turns[fileset].1;
        let number = *turn % entries.clamp(1, TURNS);
        *turn = number + 1;
        SlotId::Turn(fileset, number)
    }

    /// The slot of a numbered descriptor. Number 0, which is what a flowop has that names none, is that of
    /// its fileset, or else the one that was last used.
    pub(super) fn numbered(&mut self, with: &Arguments) -> SlotId {
        if with.fd > 0 {
            return SlotId::Numbered(with.fd);
        }
        self.last = with.fileset.unwrap_or(self.last);
        SlotId::Default(self.last)
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Slot> {
        let turns = self.turns.iter_mut().flat_map(|(slots, _)| slots);
        self.numbered.iter_mut().chain(&mut self.defaults).chain(turns)
    }

    /// The files that are open.
    pub(super) fn all_entries(&mut self) -> Vec<(usize, usize)> {
        self.all().filter(|slot| slot.open.is_some()).filter_map(|slot| slot.entry).collect()
    }
}

impl<'a> Worker<'a> {
    pub(super) fn fileset(&self, number: usize) -> &'a Fileset {
        &self.shared.filesets[number]
    }

    /// The slot that a flowop is about.
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

    /// Opens the file of a slot, unless it is open; false if there is no file.
    pub(super) fn ensure_open(&mut self, flowop: &Flowop, id: SlotId) -> Result<bool> {
        if let SlotId::Numbered(_) = id {
            let entry = self.slots.at(id).entry;
            if let (Some((open, _)), Some(wanted)) = (entry, flowop.with.fileset) {
                if self.slots.at(id).open.is_some() && open != wanted {
                    return Self::wrong(flowop, "its descriptor belongs to another fileset");
                }
            }
        }
        if self.slots.at(id).open.is_some() {
            return Ok(true);
        }
        Ok(self.open_one(flowop, id, Wanted::Existing)?.is_some())
    }

    /// Picks a file by the rules of the flowop.
    pub(super) fn pick(&mut self, with: &Arguments, fileset: usize, wanted: Wanted) -> Option<usize> {
        let set = self.fileset(fileset);
        let length = set.files.len();
        let index = self.drawn_index(with, length);
        let turn = if with.open_next { self.index + 1 } else { 0 };
        set.files.pick(wanted, index, turn, || self.shared.over())
    }

    /// The file that an index means: the whole set lies below 2, as it was defined.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    pub(super) fn drawn_index(&mut self, with: &Arguments, length: usize) -> Option<usize> {
        let index = self.sampler.draw(with.index.as_ref()?);
        Some((index * (length as f64 / 2.0)) as usize % length.max(1))
    }

    /// Picks and opens a file; how long the opening alone took, or `None` if there is no file.
    fn open_one(&mut self, flowop: &Flowop, id: SlotId, wanted: Wanted) -> Result<Option<u64>> {
        let Some(fileset) = flowop.with.fileset else {
            return Self::wrong(flowop, "its descriptor is not open, and it names no fileset to open");
        };
        let Some(file) = self.pick(&flowop.with, fileset, wanted) else { return Ok(None) };
        let set = self.fileset(fileset);
        let start = now_ns();
        match self.open_picked(flowop, set, file, wanted == Wanted::Missing) {
            Ok(open) => {
                let slot = self.slots.at(id);
                (slot.open, slot.entry) = (Some(open), Some((fileset, file)));
                let fate = if wanted == Wanted::Missing { Fate::Exists } else { Fate::Unchanged };
                set.files.give_back(file, fate, 1);
                Ok(Some(start))
            }
            Err(errno) => {
                set.files.give_back(file, Fate::Unchanged, 0);
                let action = if wanted == Wanted::Missing { "create" } else { "open" };
                Err(Error::system(action, set.path_of(file), errno))
            }
        }
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
        if with.dsync {
            flags |= OFlags::SYNC;
        }
        let open = |flags: OFlags| {
            set.at_file(file, |at: BorrowedFd<'_>, name: &Name| {
                rustix::fs::openat(at, ended(name), flags, Mode::from_raw_mode(0o666))
            })
        };
        if with.direct {
            // A file system that knows no O_DIRECT says so here.
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
        if with.no_readahead {
            rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
        }
        Ok(Open { file: Arc::new(file), position: 0, direct })
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
        self.fileset(fileset).files.count_open(file, -1);
        Ok(Next::On)
    }
}
