//! The flash translation layer. It maps pages of the disk to pages of the flash. Garbage collection copies the valid
//! pages out of a block so that the block can be erased.
//!
//! A page is the mapping unit of 4 KiB. In each die, host data and copies go to separate blocks.

use crate::index;

/// Dimensions of the flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Pages that the host sees.
    pub pages: u64,
    /// Dies.
    pub dies: u32,
    /// Blocks of a die.
    pub blocks: u32,
    /// Pages of a block.
    pub block_pages: u32,
}

const NONE: u32 = u32::MAX;
const CHUNK: usize = 1024;
/// A die collects garbage when it has at most this many free blocks.
const RESERVE: usize = 2;

#[derive(Debug, Clone, Default)]
struct Block {
    holds: Vec<u32>,
    valid: u32,
    erases: u32,
}

#[derive(Debug, Clone, Default)]
struct Die {
    free: Vec<u32>,
    host: Option<u32>,
    copies: Option<u32>,
    valid: u64,
}

/// Additional work that a write caused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Pages copied by garbage collection.
    pub copies: u32,
    /// Blocks erased.
    pub erases: u32,
    /// Pages that garbage collection freed. Its cost can be spread over as many writes.
    pub freed: u32,
}

/// The map and the blocks.
#[derive(Debug, Clone)]
pub struct Ftl {
    shape: Shape,
    map: Vec<Option<Box<[u32]>>>,
    blocks: Vec<Block>,
    dies: Vec<Die>,
    /// Pages written by the host, and all pages programmed.
    host: u64,
    programmed: u64,
}

impl Ftl {
    /// Create empty flash.
    pub fn new(shape: Shape) -> Self {
        let die = |number: u32| Die {
            free: (number * shape.blocks..(number + 1) * shape.blocks).rev().collect(),
            ..Die::default()
        };
        Self {
            shape,
            map: vec![None; index(shape.pages).div_ceil(CHUNK)],
            blocks: vec![Block::default(); (shape.dies * shape.blocks) as usize],
            dies: (0..shape.dies).map(die).collect(),
            host: 0,
            programmed: 0,
        }
    }

    /// Return the pages of a block.
    pub fn block_pages(&self) -> u32 {
        self.shape.block_pages
    }

    /// Return the number of the flash page that contains `page`.
    pub fn lookup(&self, page: u64) -> Option<u32> {
        let place = self.map[index(page) / CHUNK].as_ref()?[index(page) % CHUNK];
        (place != NONE).then_some(place)
    }

    /// Return the die of a flash page.
    pub fn die(&self, place: u32) -> u32 {
        place / self.shape.block_pages / self.shape.blocks
    }

    fn set(&mut self, page: u64, place: u32) {
        let chunk = &mut self.map[index(page) / CHUNK];
        chunk.get_or_insert_with(|| vec![NONE; CHUNK].into())[index(page) % CHUNK] = place;
    }

    /// Mark these pages as no longer needed.
    pub fn trim(&mut self, pages: std::ops::Range<u64>) {
        let mut page = pages.start;
        while page < pages.end {
            if self.map[index(page) / CHUNK].is_none() {
                page = (page / CHUNK as u64 + 1) * CHUNK as u64;
                continue;
            }
            if let Some(place) = self.lookup(page) {
                self.invalidate(place);
                self.set(page, NONE);
            }
            page += 1;
        }
    }

    fn invalidate(&mut self, place: u32) {
        let block = &mut self.blocks[(place / self.shape.block_pages) as usize];
        block.holds[(place % self.shape.block_pages) as usize] = NONE;
        block.valid -= 1;
        let die = self.die(place) as usize;
        self.dies[die].valid -= 1;
    }

    /// Return whether a die can take more pages. Overwriting moves pages between dies; without this limit it could fill
    /// a die.
    pub fn has_room(&self, die: u32) -> bool {
        let usable = u64::from(self.shape.blocks).saturating_sub(RESERVE as u64 + 3);
        self.dies[die as usize].valid < usable * u64::from(self.shape.block_pages)
    }

    /// Write a page to this die.
    pub fn write(&mut self, page: u64, die: u32) -> Cost {
        self.host += 1;
        if let Some(place) = self.lookup(page) {
            self.invalidate(place);
        }
        let mut cost = Cost::default();
        if self.open(die, false).is_none() {
            while self.dies[die as usize].free.len() <= RESERVE && self.collect(die, &mut cost) {}
            self.dies[die as usize].host = self.take_free(die);
        }
        self.program(page, die, false);
        cost
    }

    /// Return the open block if it has room.
    fn open(&self, die: u32, copy: bool) -> Option<u32> {
        let die = &self.dies[die as usize];
        let block = if copy { die.copies } else { die.host }?;
        (self.blocks[block as usize].holds.len() < self.shape.block_pages as usize).then_some(block)
    }

    fn take_free(&mut self, die: u32) -> Option<u32> {
        self.dies[die as usize].free.pop()
    }

    fn program(&mut self, page: u64, die: u32, copy: bool) {
        let number = self.open(die, copy).expect("bug: collection left no room in a die");
        let block = &mut self.blocks[number as usize];
        let slot = u32::try_from(block.holds.len()).expect("bug: a block has few pages");
        block.holds.push(u32::try_from(page).expect("bug: no disk here has 16 TiB"));
        block.valid += 1;
        self.dies[die as usize].valid += 1;
        self.programmed += 1;
        self.set(page, number * self.shape.block_pages + slot);
    }

    /// Collect one block of a die. Returns false if no block would free a page.
    fn collect(&mut self, die: u32, cost: &mut Cost) -> bool {
        let Some(victim) = self.victim(die) else { return false };
        let holds = std::mem::take(&mut self.blocks[victim as usize].holds);
        self.dies[die as usize].valid -= u64::from(std::mem::take(&mut self.blocks[victim as usize].valid));
        for page in holds.iter().filter(|page| **page != NONE) {
            if self.open(die, true).is_none() {
                self.dies[die as usize].copies = self.take_free(die);
            }
            self.program(u64::from(*page), die, true);
            cost.copies += 1;
            cost.freed = cost.freed.wrapping_sub(1);
        }
        cost.freed = cost.freed.wrapping_add(self.shape.block_pages);
        cost.erases += 1;
        self.blocks[victim as usize].erases += 1;
        self.dies[die as usize].free.insert(0, victim); // wear levelling: blocks free for longest are used first
        true
    }

    /// Return the block with the fewest valid pages, if one of these can be freed (greedy collection).
    fn victim(&self, die: u32) -> Option<u32> {
        let state = &self.dies[die as usize];
        let full = |number: &u32| {
            let block = &self.blocks[*number as usize];
            block.holds.len() == self.shape.block_pages as usize
                && block.valid < self.shape.block_pages
                && Some(*number) != state.host
                && Some(*number) != state.copies
        };
        let candidates = (die * self.shape.blocks..(die + 1) * self.shape.blocks).filter(full);
        candidates.min_by_key(|number| self.blocks[*number as usize].valid)
    }

    /// Return the pages programmed per page that the host wrote; `None` before the first write.
    pub fn amplification(&self) -> Option<f64> {
        (self.host > 0).then(|| self.programmed as f64 / self.host as f64)
    }

    /// Return the pages written by the host, and all pages programmed.
    pub fn counts(&self) -> (u64, u64) {
        (self.host, self.programmed)
    }

    /// Reset all counts, as after preconditioning.
    pub fn forget_counts(&mut self) {
        (self.host, self.programmed) = (0, 0);
        self.blocks.iter_mut().for_each(|block| block.erases = 0);
    }

    /// Return the erases of a block: average and maximum.
    pub fn wear(&self) -> (f64, u32) {
        let erases = self.blocks.iter().map(|block| block.erases);
        let total: u64 = erases.clone().map(u64::from).sum();
        (total as f64 / self.blocks.len() as f64, erases.max().unwrap_or(0))
    }

    /// Check that the map and the blocks agree. Returns the first disagreement as an error.
    pub fn check(&self) -> Result<(), String> {
        let mut found = 0_u64;
        for (number, block) in (0..).zip(&self.blocks) {
            let valid = block.holds.iter().filter(|page| **page != NONE).count();
            if valid != block.valid as usize {
                return Err(format!("block {number} counts {} valid pages and has {valid}", block.valid));
            }
            for (slot, page) in (0..).zip(&block.holds).filter(|(_, page)| **page != NONE) {
                let place: u32 = number * self.shape.block_pages + slot;
                if self.lookup(u64::from(*page)) != Some(place) {
                    return Err(format!("page {page} lies at {place}, where the map does not look"));
                }
                found += 1;
            }
        }
        let mapped =
            self.map.iter().flatten().flat_map(|chunk| chunk.iter()).filter(|place| **place != NONE).count()
                as u64;
        if mapped == found { Ok(()) } else { Err(format!("{mapped} pages mapped, {found} found")) }
    }
}
