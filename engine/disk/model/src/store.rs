//! The contents of the disk: pages of 4 KiB, allocated at their first write, shared among threads.
//!
//! A page of zeros is a hole, and takes no memory: a file system below a layout that cannot pass on a command to write
//! zeros (md) writes them as data, in gigabytes. Memory use is close to what was written otherwise: a page costs 4 KiB, 4 B in a table of 16 pages, and a share of that table's
//! entry. The worst case is one page in each table: 4 % more.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{PAGE, index};

/// No space for another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

const SPAN_PAGES: usize = 16;
const SPAN: u64 = SPAN_PAGES as u64;
const SPAN_BYTES: u64 = SPAN * PAGE as u64;
const SHARDS: u64 = 64;
const CHUNK_PAGES: u32 = 64;
const NONE: u32 = u32::MAX;

#[derive(Default)]
struct Shard {
    spans: HashMap<u64, [u32; SPAN_PAGES]>,
    chunks: Vec<Box<[u8]>>,
    used: u32,
    free: Vec<u32>,
}

impl Shard {
    fn slot(&self, page: u64) -> Option<u32> {
        let slot = self.spans.get(&(page / SPAN))?[index(page % SPAN)];
        (slot != NONE).then_some(slot)
    }

    fn page(&self, slot: u32) -> &[u8] {
        let start = (slot % CHUNK_PAGES) as usize * PAGE;
        &self.chunks[(slot / CHUNK_PAGES) as usize][start..start + PAGE]
    }

    fn page_mut(&mut self, slot: u32) -> &mut [u8] {
        let start = (slot % CHUNK_PAGES) as usize * PAGE;
        &mut self.chunks[(slot / CHUNK_PAGES) as usize][start..start + PAGE]
    }

    /// Allocate a zeroed page for `page`, which must have none.
    fn make(&mut self, page: u64) -> u32 {
        let slot = if let Some(slot) = self.free.pop() {
            self.page_mut(slot).fill(0);
            slot
        } else {
            if self.used % CHUNK_PAGES == 0 {
                // The kernel maps large zeroed allocations lazily: they take no memory until a page is touched.
                self.chunks.push(vec![0; CHUNK_PAGES as usize * PAGE].into_boxed_slice());
            }
            self.used += 1;
            self.used - 1
        };
        self.spans.entry(page / SPAN).or_insert([NONE; SPAN_PAGES])[index(page % SPAN)] = slot;
        slot
    }

    fn drop_page(&mut self, page: u64) -> bool {
        let Some(span) = self.spans.get_mut(&(page / SPAN)) else { return false };
        let slot = std::mem::replace(&mut span[index(page % SPAN)], NONE);
        if slot == NONE {
            return false;
        }
        if span.iter().all(|slot| *slot == NONE) {
            self.spans.remove(&(page / SPAN));
        }
        self.free.push(slot);
        true
    }
}

/// The contents of a disk, up to a limit.
pub struct Store {
    shards: Vec<RwLock<Shard>>,
    pages: AtomicU64,
    limit: u64,
}

impl Store {
    /// Create a store that holds at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            pages: AtomicU64::new(0),
            limit: limit / PAGE as u64,
        }
    }

    fn shard(&self, page: u64) -> &RwLock<Shard> {
        &self.shards[index(page / SPAN % SHARDS)]
    }

    fn reading(&self, page: u64) -> RwLockReadGuard<'_, Shard> {
        self.shard(page).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self, page: u64) -> RwLockWriteGuard<'_, Shard> {
        self.shard(page).write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Release all pages of these tables. The time depends on the number of tables that exist.
    fn drop_spans(&self, spans: &Range<u64>) {
        for shard in &self.shards {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            let Shard { spans: tables, free, .. } = &mut *shard;
            let before = free.len();
            tables.retain(|span, slots| {
                let kept = !spans.contains(span);
                free.extend(slots.iter().filter(|slot| !kept && **slot != NONE));
                kept
            });
            self.pages.fetch_sub((free.len() - before) as u64, Ordering::Relaxed);
        }
    }

    fn reserve(&self) -> Result<(), Full> {
        if self.pages.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.pages.fetch_sub(1, Ordering::Relaxed);
            return Err(Full);
        }
        Ok(())
    }

    /// Fill `buffer` with the contents from `offset`. Bytes never written are zero.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Full> {
        for (page, inner, part) in pieces(offset, buffer.len()) {
            let shard = self.reading(page);
            let target = &mut buffer[part];
            match shard.slot(page) {
                Some(slot) => target.copy_from_slice(&shard.page(slot)[inner..inner + target.len()]),
                None => target.fill(0),
            }
        }
        Ok(())
    }

    /// Write `data` at `offset`.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), Full> {
        for (page, inner, part) in pieces(offset, data.len()) {
            let mut shard = self.writing(page);
            let bytes = &data[part];
            let slot = match shard.slot(page) {
                None if is_zero(bytes) => continue,
                Some(_) if bytes.len() == PAGE && is_zero(bytes) => {
                    shard.drop_page(page);
                    self.pages.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                Some(slot) => slot,
                None => {
                    self.reserve()?;
                    shard.make(page)
                }
            };
            shard.page_mut(slot)[inner..inner + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Set these bytes to zero and release their space.
    pub fn punch(&self, offset: u64, length: u64) -> Result<(), Full> {
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let (page, inner) = (at / PAGE as u64, index(at % PAGE as u64));
            let part = index((end - at).min((PAGE - inner) as u64));
            let tables = (end - at) / SPAN_BYTES;
            if at % SPAN_BYTES == 0 && tables > self.pages.load(Ordering::Relaxed) {
                self.drop_spans(&(page / SPAN..page / SPAN + tables)); // rather than look at each place in the range
                at += tables * SPAN_BYTES;
                continue;
            }
            let mut shard = self.writing(page);
            if part == PAGE {
                if shard.drop_page(page) {
                    self.pages.fetch_sub(1, Ordering::Relaxed);
                } else if !shard.spans.contains_key(&(page / SPAN)) {
                    at = (page / SPAN + 1) * SPAN * PAGE as u64; // the whole table has no page
                    continue;
                }
            } else if let Some(slot) = shard.slot(page) {
                shard.page_mut(slot)[inner..inner + part].fill(0);
            }
            at += part as u64;
        }
        Ok(())
    }

    /// Return the space in use, in bytes.
    pub fn occupied(&self) -> u64 {
        self.pages.load(Ordering::Relaxed) * PAGE as u64
    }

    /// Call `page` with the offset and bytes of every written page, in any order.
    pub fn each_page(&self, page: &mut dyn FnMut(u64, &[u8])) {
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            for (span, slots) in &shard.spans {
                for (number, slot) in (span * SPAN..).zip(slots).filter(|(_, slot)| **slot != NONE) {
                    page(number * PAGE as u64, shard.page(*slot));
                }
            }
        }
    }

    /// Return whether `page` is a hole: it has no data and reads as zero.
    pub fn is_hole(&self, page: u64) -> bool {
        self.reading(page).slot(page).is_none()
    }
}

/// Return whether all bytes are zero. At most one page.
pub fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; PAGE] = [0; PAGE];
    bytes == &ZEROS[..bytes.len()] // as memcmp(3): compared by the longest words of the CPU
}

/// Split a range by page: page, offset in the page, range in the buffer.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let inner = index(at % PAGE as u64);
        let part = done..length.min(done + PAGE - inner);
        done = part.end;
        Some((at / PAGE as u64, inner, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written_and_zeros_elsewhere() {
        let store = Store::new(1 << 20);
        store.write(4000, &[7; 5000]).expect("room");
        let mut buffer = [1; 6000];
        store.read(3500, &mut buffer).expect("room");
        assert!(buffer[..500].iter().all(|byte| *byte == 0));
        assert!(buffer[500..5500].iter().all(|byte| *byte == 7));
        assert!(buffer[5500..].iter().all(|byte| *byte == 0));
        assert_eq!(store.occupied(), 3 * 4096);
    }

    #[test]
    fn a_hole_is_zero_and_gives_its_room_back() {
        let store = Store::new(4 * 4096);
        store.write(0, &[9; 4 * 4096]).expect("room for four");
        assert_eq!(store.write(1 << 30, &[1]), Err(Full));
        store.punch(100, 2 * 4096).expect("memory");
        assert_eq!(store.occupied(), 3 * 4096, "one page was whole");
        store.write(1 << 40, &[1; 512]).expect("room again");
        let mut buffer = [3; 4096];
        store.read(1 << 40, &mut buffer).expect("memory");
        assert_eq!((buffer[511], buffer[512]), (1, 0), "a page used again is clean");
        store.punch(0, 1 << 40).expect("a hole of a terabyte takes no time");
        assert_eq!(store.occupied(), 4096);
        store.punch(SPAN_BYTES - 4096, 1 << 60).expect("memory");
        assert_eq!(store.occupied(), 0);
    }

    #[test]
    fn zeros_take_no_memory() {
        let store = Store::new(2 * 4096);
        store.write(512, &vec![0; 1 << 20]).expect("no memory is needed");
        assert_eq!(store.occupied(), 0);
        store.write(4096, &[7; 2 * 4096]).expect("room for two");
        assert_eq!(store.write(0, &[1]), Err(Full));
        store.write(4000, &[0; 4096 + 96 + 1]).expect("room");
        assert_eq!(store.occupied(), 4096, "one page is all zeros again");
        let mut buffer = [3; 3];
        store.read(2 * 4096 - 1, &mut buffer).expect("memory");
        assert_eq!(buffer, [0, 0, 7]);
        store.write(0, &[1]).expect("room again");
    }

    #[test]
    fn a_hole_of_any_size_releases_the_pages_in_it_and_no_others() {
        let pages = [0, 1, 15, 16, 17, 40, 1 << 20];
        for (first, last) in [(0, 16), (1, 41), (16, 17), (15, 1 << 20), (16, 1 << 30), (0, 1 << 30)] {
            let store = Store::new(1 << 20);
            for page in pages {
                store.write(page * PAGE as u64, &[7; PAGE]).expect("room");
            }
            store.punch(first * PAGE as u64, (last - first) * PAGE as u64).expect("memory");
            let left: Vec<_> = pages.into_iter().filter(|page| !store.is_hole(*page)).collect();
            let outside: Vec<_> = pages.into_iter().filter(|page| !(first..last).contains(page)).collect();
            assert_eq!(left, outside, "{first}..{last}");
            assert_eq!(store.occupied(), outside.len() as u64 * PAGE as u64);
        }
    }
}
