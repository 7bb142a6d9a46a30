//! Kept contents of the disk: copies in memory, to which it can return. They know nothing of the model.

use std::collections::HashMap;

use fslab_disk_model::store::{Full, Store};

/// Copies of the contents, by name.
pub(crate) struct Kept {
    limit: u64,
    copies: HashMap<String, Store>,
}

impl Kept {
    /// Create an empty collection, whose copies together take at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, copies: HashMap::new() }
    }

    /// Keep the contents of `store` as `name`, instead of an earlier copy of that name. Returns their bytes.
    pub(crate) fn keep(&mut self, name: String, store: &Store) -> Result<u64, Full> {
        self.copies.remove(&name);
        let copy = Store::new(self.limit.saturating_sub(self.bytes()));
        copy_pages(store, &copy)?;
        let bytes = copy.occupied();
        self.copies.insert(name, copy);
        Ok(bytes)
    }

    /// Return the copy of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Store> {
        self.copies.get(name)
    }

    /// Forget the copy of this name, if there is one.
    pub(crate) fn forget(&mut self, name: &str) {
        self.copies.remove(name);
    }

    /// Return the memory that the copies take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.copies.values().map(Store::occupied).sum()
    }
}

/// Write every page of one store to another.
pub(crate) fn copy_pages(from: &Store, to: &Store) -> Result<(), Full> {
    let mut copied = Ok(());
    from.each_page(&mut |offset, page| {
        if copied.is_ok() {
            copied = to.write(offset, page);
        }
    });
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    #[test]
    fn a_copy_is_equal_and_does_not_follow_later_writes() {
        let (store, mut kept) = (Store::new(1 << 20), Kept::new(1 << 20));
        store.write(1 << 40, &[7; 2 * PAGE]).expect("room");
        assert_eq!(kept.keep("empty".into(), &store), Ok(2 * PAGE as u64));
        store.write(1 << 40, &[8; PAGE]).expect("room");
        store.write(0, &[9; PAGE]).expect("room");
        store.punch(0, u64::MAX >> 1).expect("memory");
        copy_pages(kept.get("empty").expect("kept"), &store).expect("room");
        let mut buffer = [0; PAGE];
        store.read(1 << 40, &mut buffer).expect("memory");
        assert_eq!((buffer[0], store.occupied()), (7, 2 * PAGE as u64));
        kept.forget("empty");
        assert!(kept.get("empty").is_none());
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn without_room_nothing_is_kept_and_the_others_stay() {
        let (store, mut kept) = (Store::new(1 << 20), Kept::new(3 * PAGE as u64));
        store.write(0, &[1; 2 * PAGE]).expect("room");
        kept.keep("first".into(), &store).expect("room for two");
        assert_eq!(kept.keep("second".into(), &store), Err(Full));
        assert!(kept.get("second").is_none());
        assert_eq!(kept.bytes(), 2 * PAGE as u64);
        store.write(0, &[2; PAGE]).expect("room");
        kept.keep("first".into(), &store).expect("the old one is replaced");
    }
}
