//! The data that a power cut can lose: the previous contents of each page with unflushed writes.
//!
//! The store always contains what the host reads. This module keeps what the medium still contains instead. Data is
//! cached by sector, as in a drive: after two writes to a sector without a flush, the medium has either the contents
//! before both writes or the current ones. Each flush starts a new layer. When the flush completes, all layers before
//! it are on the medium.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fslab_engine::random::Stream;
use serde::Deserialize;

use crate::store::{Full, Store};
use crate::{PAGE, PAGE_SECTORS, SECTOR, index};

struct Saved {
    /// `None` if the page was a hole.
    before: Option<Box<[u8]>>,
    sectors: u8,
    last: u64,
}

#[derive(Default)]
struct Layer {
    /// The flush that closed this layer.
    flush: Option<u64>,
    pages: BTreeMap<u64, Saved>,
}

/// How a power cut treats unflushed data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unflushed {
    /// Each page is kept or lost at random, because the device may have written any of them.
    Random,
    /// All unflushed data is lost.
    Lost,
    /// All unflushed data is kept.
    Kept,
}

/// The data that is not yet on the medium.
pub struct Volatile {
    layers: VecDeque<Layer>,
}

impl Default for Volatile {
    fn default() -> Self {
        Self { layers: VecDeque::from([Layer::default()]) }
    }
}

/// Return a bit mask of the sectors of `page` that are in `sector..end`.
fn bits(page: u64, sector: u64, end: u64) -> u8 {
    let first = page * PAGE_SECTORS;
    (0..PAGE_SECTORS)
        .filter(|bit| (sector..end).contains(&(first + bit)))
        .fold(0, |mask, bit| mask | 1 << bit)
}

/// Return the pages that contain `sector..end`.
fn pages(sector: u64, end: u64) -> std::ops::Range<u64> {
    sector / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)
}

impl Volatile {
    /// Save the present contents of `sectors` sectors from `sector`, before request `id` changes them.
    pub fn before_write(&mut self, store: &Store, id: u64, sector: u64, sectors: u64) -> Result<(), Full> {
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

    /// Save the present contents before request `id` sets these sectors to zero. Pages that are holes do not change: a
    /// file system zeroes gigabytes of them.
    pub fn before_zeros(&mut self, store: &Store, id: u64, sector: u64, sectors: u64) -> Result<(), Full> {
        let end = sector + sectors;
        pages(sector, end).filter(|page| !store.is_hole(*page)).try_for_each(|page| {
            let (first, last) = (sector.max(page * PAGE_SECTORS), end.min((page + 1) * PAGE_SECTORS));
            self.before_write(store, id, first, last - first)
        })
    }

    /// Start a new layer when a flush arrives: the flush does not cover later writes.
    pub fn flush_begins(&mut self, id: u64) {
        let layer = self.layers.back_mut().expect("bug: there always is a layer");
        layer.flush = Some(id);
        self.layers.push_back(Layer::default());
    }

    /// Drop the layers that this flush and earlier ones closed: they are on the medium.
    pub fn flush_done(&mut self, id: u64) {
        while self.layers.front().is_some_and(|layer| layer.flush.is_some_and(|flush| flush <= id)) {
            self.layers.pop_front();
        }
    }

    /// Note that the data that requests up to `id` wrote to these sectors is on the medium. A page with a later write
    /// is left unchanged: the medium may lag behind what the drive reported.
    pub fn persisted(&mut self, store: &Store, sector: u64, sectors: u64, id: u64) -> Result<(), Full> {
        for page in pages(sector, sector + sectors) {
            let newer =
                self.layers.iter().any(|layer| layer.pages.get(&page).is_some_and(|saved| saved.last > id));
            if newer {
                continue;
            }
            self.settle(store, page, bits(page, sector, sector + sectors))?;
        }
        Ok(())
    }

    /// Note that these sectors were discarded, and that the store has no data of them: a power cut does not undo it.
    pub fn discarded(&mut self, store: &Store, sector: u64, sectors: u64) -> Result<(), Full> {
        let touched: BTreeSet<u64> = self
            .layers
            .iter()
            .flat_map(|layer| layer.pages.range(pages(sector, sector + sectors)))
            .map(|(page, _)| *page)
            .collect();
        touched
            .into_iter()
            .try_for_each(|page| self.settle(store, page, bits(page, sector, sector + sectors)))
    }

    /// Note that the present contents of these sectors of a page are on the medium.
    fn settle(&mut self, store: &Store, page: u64, mask: u8) -> Result<(), Full> {
        for layer in &mut self.layers {
            let Some(saved) = layer.pages.get_mut(&page) else { continue };
            saved.sectors &= !mask;
            if saved.sectors == 0 {
                layer.pages.remove(&page);
            } else {
                saved.take_current(store, page, mask)?;
            }
        }
        Ok(())
    }

    /// Return how many bytes a power cut can lose.
    pub fn bytes(&self) -> u64 {
        let sectors: u64 = self
            .layers
            .iter()
            .flat_map(|layer| layer.pages.values())
            .map(|saved| u64::from(saved.sectors.count_ones()))
            .sum();
        sectors * SECTOR
    }

    /// Cut power and restore the previous contents of lost data. `torn` decides for each sector instead of each page.
    /// Returns the bytes lost.
    pub fn cut(&mut self, store: &Store, fate: Unflushed, torn: bool, seed: u64) -> Result<u64, Full> {
        let mut random = Stream::new(seed, 0);
        let mut decided = BTreeSet::new(); // sectors of which a newer version was kept: older ones are not restored
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
    fn take_current(&mut self, store: &Store, page: u64, mask: u8) -> Result<(), Full> {
        let before = self.before.get_or_insert_with(|| vec![0; PAGE].into_boxed_slice());
        for bit in (0..PAGE_SECTORS).filter(|bit| mask & 1 << bit != 0) {
            let start = index(bit * SECTOR);
            let at = (page * PAGE_SECTORS + bit) * SECTOR;
            store.read(at, &mut before[start..start + index(SECTOR)])?;
        }
        Ok(())
    }

    fn restore(&self, store: &Store, sector: u64) -> Result<(), Full> {
        match &self.before {
            None => store.punch(sector * SECTOR, SECTOR),
            Some(bytes) => {
                let start = index(sector % PAGE_SECTORS * SECTOR);
                store.write(sector * SECTOR, &bytes[start..start + index(SECTOR)])
            }
        }
    }
}
