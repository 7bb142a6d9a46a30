//! File descriptors of a thread: numbered ones, a default one for each fileset, and those that are used in turn
//! (`opennext`).

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::program::{Arguments, Opening};
use fslab_engine::direct::Alignment;

/// Maximum number of files of a fileset that a thread keeps open with `opennext`.
const TURNS: usize = 512;

/// An open file.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: Arc<OwnedFd>,
    /// Offset of the next sequential `read` or `write`, in bytes.
    pub(super) position: u64,
    /// Alignment that `O_DIRECT` requires; `None` if the page cache is used.
    pub(super) direct: Option<Alignment>,
    /// How the flowop that opened it asked to open it.
    pub(super) opening: Opening,
}

/// A descriptor of a thread. `entry` is kept after the file is closed, so that `deletefile` can still delete it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) open: Option<Open>,
    /// Number of the fileset, and number of the file in it.
    pub(super) entry: Option<(usize, usize)>,
}

/// The identification of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotId {
    /// A descriptor number above 0.
    Numbered(usize),
    /// Descriptor 0 of this fileset; each fileset has its own.
    Default(usize),
    /// Number of the fileset, and number of its slot for `opennext`.
    Turn(usize, usize),
}

/// All slots of a thread.
#[derive(Debug)]
pub(super) struct Slots {
    numbered: Vec<Slot>,
    defaults: Vec<Slot>,
    /// The fileset for which descriptor 0 was last used.
    last: usize,
    /// Slots for `opennext` and the number of the next one, by fileset.
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

    /// Return the next slot for `opennext`. There are at most [`TURNS`] slots, and not more than the fileset has files.
    pub(super) fn next_turn(&mut self, fileset: usize, entries: usize) -> SlotId {
        let turn = &mut self.turns[fileset].1;
        let number = *turn % entries.clamp(1, TURNS);
        *turn = number + 1;
        SlotId::Turn(fileset, number)
    }

    /// Return the slot of the descriptor that a flowop names. Descriptor 0, the default, is that of the flowop's
    /// fileset, or of the fileset last used with it if the flowop names none.
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

    /// Return the open files, as numbers of the fileset and of the file in it.
    pub(super) fn all_entries(&mut self) -> Vec<(usize, usize)> {
        self.all().filter(|slot| slot.open.is_some()).filter_map(|slot| slot.entry).collect()
    }
}
