//! File descriptors of a thread: numbered ones, and those that take turns (`opennext`).

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::program::Arguments;
use fslab_engine::direct::Alignment;

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

    pub(super) fn next_turn(&mut self, fileset: usize, entries: usize) -> SlotId {
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
