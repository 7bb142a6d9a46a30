//! Tests of a power cut: flushed data remains. Every other sector has its contents before or after an unflushed write.

use std::collections::BTreeMap;

use fslab_disk_model::store::Store;
use fslab_disk_model::volatile::{Unflushed, Volatile};
use proptest::prelude::*;

const SECTORS: u64 = 64;

#[derive(Debug, Clone, Copy)]
enum Step {
    Write {
        sector: u64,
        sectors: u64,
    },
    /// A flush arrives, and completes `after` steps later.
    Flush {
        after: usize,
    },
    /// The drive wrote back all data of this range so far.
    Back {
        sector: u64,
        sectors: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let range = (0..SECTORS - 20, 1_u64..20);
    prop_oneof![
        5 => range.clone().prop_map(|(sector, sectors)| Step::Write { sector, sectors }),
        1 => (0_usize..4).prop_map(|after| Step::Flush { after }),
        1 => range.prop_map(|(sector, sectors)| Step::Back { sector, sectors }),
    ]
}

/// The valid contents of each sector after a cut, as the id of a write; 0 before the first write.
#[derive(Default)]
struct Truth {
    history: BTreeMap<u64, Vec<u64>>,
    durable: BTreeMap<u64, u64>,
}

impl Truth {
    fn write(&mut self, sector: u64, id: u64) {
        self.history.entry(sector).or_default().push(id);
    }

    /// Note that the writes up to `id` are durable.
    fn flush(&mut self, id: u64) {
        for (sector, writes) in &self.history {
            if let Some(last) = writes.iter().filter(|write| **write <= id).max() {
                let durable = self.durable.entry(*sector).or_default();
                *durable = (*durable).max(*last);
            }
        }
    }

    fn allows(&self, sector: u64, found: u64) -> bool {
        let least = self.durable.get(&sector).copied().unwrap_or(0);
        let known = found == 0 || self.history.get(&sector).is_some_and(|writes| writes.contains(&found));
        known && found >= least
    }
}

fn number(store: &Store, sector: u64) -> Result<u64, TestCaseError> {
    let mut bytes = [0; 512];
    store.read(sector * 512, &mut bytes).expect("memory");
    let first = u64::from_le_bytes(bytes[..8].try_into().expect("eight"));
    prop_assert!(bytes.chunks(8).all(|chunk| chunk == first.to_le_bytes()), "a sector is torn");
    Ok(first)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flushed_data_is_there(steps in prop::collection::vec(step(), 1..60), seed in any::<u64>(), torn in any::<bool>(), fate in 0_usize..3) {
        let fate = [Unflushed::Random, Unflushed::Lost, Unflushed::Kept][fate];
        let (store, mut volatile, mut truth) = (Store::new(1 << 20), Volatile::default(), Truth::default());
        let mut flushes: Vec<(usize, u64)> = Vec::new();
        for (now, step) in steps.iter().enumerate() {
            let id = now as u64 + 1;
            match *step {
                Step::Write { sector, sectors } => {
                    volatile.before_write(&store, id, sector, sectors).expect("memory");
                    for one in sector..sector + sectors {
                        store.write(one * 512, &id.to_le_bytes().repeat(64)).expect("room");
                        truth.write(one, id);
                    }
                }
                Step::Flush { after } => {
                    volatile.flush_begins(id);
                    flushes.push((now + after, id));
                }
                Step::Back { sector, sectors } => volatile.persisted(&store, sector, sectors, id).expect("memory"),
            }
            flushes.sort_unstable();
            while let Some((_, flush)) = flushes.first().copied().filter(|(due, _)| *due <= now) {
                flushes.remove(0);
                volatile.flush_done(flush);
                truth.flush(flush);
            }
        }
        let before: Vec<_> = (0..SECTORS).map(|sector| number(&store, sector)).collect::<Result<_, _>>()?;
        volatile.cut(&store, fate, torn, seed).expect("memory");
        for (sector, was) in (0..SECTORS).zip(before) {
            let found = number(&store, sector)?;
            prop_assert!(truth.allows(sector, found), "sector {sector} holds {found}");
            if fate == Unflushed::Kept {
                prop_assert_eq!(found, was);
            }
        }
        prop_assert_eq!(volatile.bytes(), 0);
    }
}

#[test]
fn a_cut_does_not_undo_a_discard() {
    let (store, mut volatile) = (Store::new(1 << 20), Volatile::default());
    let write = |volatile: &mut Volatile, id, sector, sectors: u64, byte| {
        volatile.before_write(&store, id, sector, sectors).expect("memory");
        store.write(sector * 512, &vec![byte; usize::try_from(sectors).expect("few") * 512]).expect("room");
    };
    write(&mut volatile, 1, 0, 16, 1);
    volatile.flush_begins(2);
    volatile.flush_done(2);
    write(&mut volatile, 3, 0, 16, 3);
    store.punch(0, 12 * 512).expect("memory");
    volatile.discarded(&store, 0, 12).expect("memory");
    write(&mut volatile, 4, 4, 1, 4);
    assert_eq!(volatile.cut(&store, Unflushed::Lost, false, 0), Ok(5 * 512));
    let mut found = vec![9; 16 * 512];
    store.read(0, &mut found).expect("memory");
    let first: Vec<_> = found.chunks(512).map(|sector| sector[0]).collect();
    assert_eq!(first, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
}
