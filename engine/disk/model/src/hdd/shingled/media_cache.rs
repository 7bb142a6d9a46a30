//! The persistent cache: a ring of sectors on the disk that is written from front to back, and the map of what it has.

use std::collections::VecDeque;

use crate::PAGE_SECTORS;
use crate::hdd::runs::Runs;

/// A write in the ring. `at` grows for ever; its sector in the ring is `at` modulo the ring's size.
#[derive(Debug, Clone, Copy)]
struct Extent {
    at: u64,
    sector: u64,
    end: u64,
}

#[derive(Debug)]
pub(super) struct MediaCache {
    base: u64,
    size: u64,
    most: usize,
    /// The host's sectors that are cached. Value: the position in the ring less the host's sector.
    map: Runs<u64>,
    ring: VecDeque<Extent>,
    head: u64,
}

impl MediaCache {
    pub(super) fn new(base: u64, size: u64, most: usize) -> Self {
        Self { base, size, most, map: Runs::default(), ring: VecDeque::new(), head: 0 }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.map.sectors()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.base, self.size, self.most);
    }

    fn used(&self) -> u64 {
        self.ring.front().map_or(0, |oldest| self.head - oldest.at)
    }

    /// Return whether less than a twentieth is free.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.used() * 20 > self.size * 19 || self.map.runs() * 20 > self.most * 19
    }

    fn place(&self, at: u64) -> u64 {
        self.base + at % self.size
    }

    /// Take room for a write of the host. Returns the first sector on the disk; `None` without room.
    pub(super) fn take(&mut self, sector: u64, sectors: u64) -> Option<u64> {
        let whole = sectors.next_multiple_of(PAGE_SECTORS);
        let left = self.size - self.head % self.size;
        let at = if whole > left { self.head + left } else { self.head };
        let oldest = self.ring.front().map_or(at, |oldest| oldest.at);
        let full = at + whole - oldest > self.size || self.map.runs() + 2 > self.most;
        if full && !self.ring.is_empty() {
            return None;
        }
        self.head = at + whole;
        self.map.insert(sector, sector + sectors, at.wrapping_sub(sector));
        self.ring.push_back(Extent { at, sector, end: sector + sectors });
        self.trim();
        Some(self.place(at))
    }

    /// Return the cached parts of `sector..end`: first sector, end, and the first sector on the disk.
    pub(super) fn places(&self, sector: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let parts = self.map.within(sector, end).into_iter();
        parts.map(|(start, stop, offset)| (start, stop, self.place(start.wrapping_add(offset)))).collect()
    }

    /// Return the oldest cached sector of the host.
    pub(super) fn oldest(&self) -> Option<u64> {
        let extent = self.ring.front()?;
        self.live(*extent).first().map(|(start, _)| *start)
    }

    /// Drop the cached data of these sectors.
    pub(super) fn forget(&mut self, sector: u64, end: u64) {
        self.map.remove(sector, end);
        self.trim();
    }

    /// Drop the cached data of `sector..end` that is at `place` on the disk. What was written since then stays.
    pub(super) fn forget_at(&mut self, sector: u64, end: u64, place: u64) {
        for (start, stop, found) in self.places(sector, end) {
            if found == place + (start - sector) {
                self.map.remove(start, stop);
            }
        }
        self.trim();
    }

    /// Return the parts of an extent that no later write replaced.
    fn live(&self, extent: Extent) -> Vec<(u64, u64)> {
        let offset = extent.at.wrapping_sub(extent.sector);
        let parts = self.map.within(extent.sector, extent.end).into_iter();
        parts.filter(|(_, _, value)| *value == offset).map(|(start, stop, _)| (start, stop)).collect()
    }

    /// Free the oldest extents that have nothing more.
    fn trim(&mut self) {
        while self.ring.front().is_some_and(|oldest| self.live(*oldest).is_empty()) {
            self.ring.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_written_from_front_to_back() {
        let mut cache = MediaCache::new(1000, 64, 100);
        assert_eq!(cache.take(8, 24), Some(1000));
        assert_eq!(cache.take(500, 3), Some(1024));
        assert_eq!(cache.take(16, 8), Some(1032), "whole physical sectors");
        assert_eq!(cache.places(0, 100), [(8, 16, 1000), (16, 24, 1032), (24, 32, 1016)]);
        assert_eq!((cache.sectors(), cache.oldest()), (27, Some(8)));
        assert_eq!(cache.take(800, 32), None, "there is no room in one piece");
        cache.forget(0, 100);
        assert_eq!(cache.oldest(), Some(500));
        assert_eq!(cache.take(800, 24), Some(1040));
        assert_eq!(cache.take(900, 24), Some(1000), "from the front again");
        assert_eq!(cache.take(600, 8), None);
    }

    #[test]
    fn what_was_written_since_stays() {
        let mut cache = MediaCache::new(0, 64, 100);
        cache.take(8, 16).expect("room");
        cache.take(16, 8).expect("room");
        cache.forget_at(8, 24, 0);
        assert_eq!(cache.places(0, 100), [(16, 24, 16)]);
    }

    #[test]
    fn the_map_has_a_bound() {
        let mut cache = MediaCache::new(0, 1 << 20, 10);
        let taken = (0..100).filter(|write| cache.take(write * 100, 8).is_some()).count();
        assert_eq!(taken, 9);
        assert!(cache.is_nearly_full() || taken < 10);
    }
}
