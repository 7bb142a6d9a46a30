//! Which written data a power cut would take back: what was there before each unflushed write.
//!
//! The store always holds what the host reads. Here is kept what the medium still holds in its place. Data is cached by
//! sector, as in a drive: a sector written twice before a flush is either on the medium as it was before both, or as it
//! is now. A flush begins a layer; when it is done, the layers before it are on the medium.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fslab_engine::random::Stream;
use serde::Deserialize;

use crate::store::{Full, Store};
use crate::{PAGE, PAGE_SECTORS, SECTOR, index};

struct Saved {
    /// None: the page was a hole.
    before: Option<Box<[u8]>>,
    sectors: u8,
    last: u64,
}

#[derive(Default)]
struct Layer {
    /// The flush that ended it.
    flush: Option<u64>,
    pages: BTreeMap<u64, Saved>,
}

/// What becomes of unflushed data when power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unflushed {
    /// Each page by the toss of a coin: the device may have written any of them.
    Random,
    /// All of it is lost.
    Lost,
    /// All of it is kept.
    Kept,
}

/// The data that is not on the medium.
pub struct Volatile {
    layers: VecDeque<Layer>,
}

impl Default for Volatile {
    fn default() -> Self {
        Self { layers: VecDeque::from([Layer::default()]) }
    }
}

/// The bits of the sectors of `page` that lie in `sector..end`.
fn bits(page: u64, sector: u64, end: u64) -> u8 {
    let first = page * PAGE_SECTORS;
    (0..PAGE_SECTORS)
        .filter(|bit| (sector..end).contains(&(first + bit)))
        .fold(0, |mask, bit| mask | 1 << bit)
}

/// The pages in which `sector..end` lies.
fn pages(sector: u64, end: u64) -> std::ops::Range<u64> {
    sector / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)
}

impl Volatile {
    /// Request `id` is about to change `sectors` from `sector` on: remembers what is there.
    pub fn before_write(
        &mut self,
        store: &dyn Store,
        id: u64,
        sector: u64,
        sectors: u64,
    ) -> Result<(), Full> {
        let layer = self.layers.back_mut().expect("bug: there always is a layer");
        for page in pages(sector, sector + sectors) {
            let mask = bits(page, sector, sector + sectors);
            if let Some(saved) = layer.pages.get_mut(&page) {
                saved.sectors |= mask;
                saved.last = id;
                continue;
            }
            let before = if store.is_hole(page) {
                None
            } else {
                let mut bytes = vec![0; PAGE].into_boxed_slice();
                store.read(page * PAGE as u64, &mut bytes)?;
                Some(bytes)
            };
            layer.pages.insert(page, Saved { before, sectors: mask, last: id });
        }
        Ok(())
    }

    /// A flush arrives: what is written from now on is not covered by it.
    pub fn flush_begins(&mut self, id: u64) {
        let layer = self.layers.back_mut().expect("bug: there always is a layer");
        layer.flush = Some(id);
        self.layers.push_back(Layer::default());
    }

    /// The flush is done: the layers that it and earlier ones ended are on the medium.
    pub fn flush_done(&mut self, id: u64) {
        while self.layers.front().is_some_and(|layer| layer.flush.is_some_and(|flush| flush <= id)) {
            self.layers.pop_front();
        }
    }

    /// What requests up to `id` wrote to these sectors is on the medium. Where a later one wrote to the same page,
    /// nothing changes: the medium may lag behind what the drive said.
    pub fn persisted(&mut self, store: &dyn Store, sector: u64, sectors: u64, id: u64) -> Result<(), Full> {
        for page in pages(sector, sector + sectors) {
            let newer =
                self.layers.iter().any(|layer| layer.pages.get(&page).is_some_and(|saved| saved.last > id));
            if newer {
                continue;
            }
            let mask = bits(page, sector, sector + sectors);
            for layer in &mut self.layers {
                let Some(saved) = layer.pages.get_mut(&page) else { continue };
                saved.sectors &= !mask;
                if saved.sectors == 0 {
                    layer.pages.remove(&page);
                } else {
                    saved.take_current(store, page, mask)?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that a power cut may take back.
    pub fn bytes(&self) -> u64 {
        let sectors: u64 = self
            .layers
            .iter()
            .flat_map(|layer| layer.pages.values())
            .map(|saved| u64::from(saved.sectors.count_ones()))
            .sum();
        sectors * SECTOR
    }

    /// Power goes: takes back what is lost. `torn` decides by sector instead of by page. Returns the bytes taken back.
    pub fn cut(&mut self, store: &dyn Store, fate: Unflushed, torn: bool, seed: u64) -> Result<u64, Full> {
        let mut random = Stream::new(seed, 0);
        let mut decided = BTreeSet::new(); // sectors of which a newer layer was kept: what is older stays below it
        let mut lost = 0;
        while let Some(layer) = self.layers.pop_back() {
            for (page, saved) in layer.pages {
                let whole = random.next_u64() & 1 == 0;
                for bit in (0..PAGE_SECTORS).filter(|bit| saved.sectors & 1 << bit != 0) {
                    let keep = match fate {
                        Unflushed::Kept => true,
                        Unflushed::Lost => false,
                        Unflushed::Random if torn => random.next_u64() & 1 == 0,
                        Unflushed::Random => whole,
                    };
                    let sector = page * PAGE_SECTORS + bit;
                    if keep {
                        decided.insert(sector);
                    } else if !decided.contains(&sector) {
                        saved.restore(store, sector)?;
                        lost += SECTOR;
                    }
                }
            }
        }
        *self = Self::default();
        Ok(lost)
    }
}

impl Saved {
    fn take_current(&mut self, store: &dyn Store, page: u64, mask: u8) -> Result<(), Full> {
        let before = self.before.get_or_insert_with(|| vec![0; PAGE].into_boxed_slice());
        for bit in (0..PAGE_SECTORS).filter(|bit| mask & 1 << bit != 0) {
            let start = index(bit * SECTOR);
            let at = (page * PAGE_SECTORS + bit) * SECTOR;
            store.read(at, &mut before[start..start + index(SECTOR)])?;
        }
        Ok(())
    }

    fn restore(&self, store: &dyn Store, sector: u64) -> Result<(), Full> {
        match &self.before {
            None => store.punch(sector * SECTOR, SECTOR),
            Some(bytes) => {
                let start = index(sector % PAGE_SECTORS * SECTOR);
                store.write(sector * SECTOR, &bytes[start..start + index(SECTOR)])
            }
        }
    }
}
