//! Tests of the translation layer (invariants, closed-form results) and of the SSD (data sheets).

use std::collections::BTreeSet;

use fslab_disk_model::Nanos;
use fslab_disk_model::drive::{Cache, Drive, Event, Op, Request};
use fslab_disk_model::ssd::{Ftl, PROFILES, Profile, Shape, Ssd};
use fslab_engine::random::Stream;
use proptest::prelude::*;

const SECOND: Nanos = 1_000_000_000;

/// Return the write amplification of greedy collection under uniform random writes (Xiang, Kurkoski: An improved
/// analytic expression for write amplification in NAND flash, ICNC 2012; Desnoyers, SYSTOR 2012):
/// A = α / (α + W(−α e^−α)). α is the flash size over the disk size. W is computed by Newton's method, on the branch
/// above −1.
fn closed_form(alpha: f64) -> f64 {
    let target = -alpha * (-alpha).exp();
    let mut w = -0.5_f64;
    for _ in 0..100 {
        w -= (w * w.exp() - target) / (w.exp() * (w + 1.0));
        w = w.max(-0.999_999);
    }
    alpha / (alpha + w)
}

#[test]
fn the_closed_form_is_the_papers() {
    assert!((closed_form(1.3) - 2.36).abs() < 0.01, "{}", closed_form(1.3));
}

#[test]
fn greedy_amplification_is_the_closed_form() {
    for tenths in [11, 12, 14] {
        let (blocks, block_pages) = (1200_u32, 128_u32);
        // Open blocks and the reserve hold no data. The closed form does not include them.
        let usable = u64::from((blocks - 4) * block_pages);
        let pages = usable * 10 / tenths;
        let alpha = tenths as f64 / 10.0;
        let mut ftl = Ftl::new(Shape { pages, dies: 1, blocks, block_pages });
        let mut random = Stream::new(1, 1);
        for page in 0..pages {
            ftl.write(page, 0);
        }
        for _ in 0..4 * pages {
            ftl.write(random.below(pages), 0);
        }
        ftl.forget_counts();
        for _ in 0..3 * pages {
            ftl.write(random.below(pages), 0);
        }
        let (measured, expected) = (ftl.amplification().expect("written"), closed_form(alpha));
        println!("{alpha}: {measured:.3} against {expected:.3}");
        assert!((measured / expected - 1.0).abs() < 0.05, "{alpha}: {measured} instead of {expected}");
        assert_eq!(ftl.check(), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// No data is stored. The test records which pages were written, and checks that the map has exactly these pages
    /// after collection.
    #[test]
    fn no_page_is_lost_and_none_is_mapped_twice(
        seed in 0_u64..1000,
        dies in 1_u32..5,
        steps in prop::collection::vec((0_u8..10, 0_u64..300), 1..3000),
    ) {
        let shape = Shape { pages: 300, dies, blocks: 300_u32.div_ceil(dies * 8) + 7, block_pages: 8 };
        let mut ftl = Ftl::new(shape);
        let mut random = Stream::new(seed, 0);
        let mut written = BTreeSet::new();
        for (kind, page) in steps {
            if kind == 0 {
                ftl.trim(page..(page + 5).min(300));
                written.retain(|other| !(page..page + 5).contains(other));
            } else {
                let first = u32::try_from(random.below(u64::from(dies))).expect("few");
                let die = (0..dies).map(|step| (first + step) % dies).find(|die| ftl.has_room(*die));
                ftl.write(page, die.expect("some die has room"));
                written.insert(page);
            }
        }
        prop_assert_eq!(ftl.check(), Ok(()));
        for page in 0..300 {
            prop_assert_eq!(ftl.lookup(page).is_some(), written.contains(&page));
        }
    }
}

fn profile(name: &str) -> &'static Profile {
    PROFILES.iter().find(|profile| profile.name == name).expect("a profile")
}

const SIZE: u64 = 1 << 30;

/// Return the requests per second, each of `sectors` sectors, with `depth` in flight.
fn rate(drive: &mut Ssd, op: Op, depth: u64, sectors: u64, random: bool, seconds: u64) -> f64 {
    let (mut id, mut done, mut events) = (0, 0_u64, Vec::new());
    let mut stream = Stream::new(4, 4);
    let places = SIZE / 512 / sectors;
    let mut now = 0;
    let mut submit = |drive: &mut Ssd, now| {
        id += 1;
        let place = if random { stream.below(places) } else { id % places };
        drive.submit(now, &Request { id, op, sector: place * sectors, sectors });
    };
    (0..depth).for_each(|_| submit(drive, 0));
    while now <= seconds * SECOND {
        now = drive.next_event().expect("requests are under way");
        drive.advance(now, &mut events);
        for event in events.drain(..) {
            if let Event::Done { at, .. } = event {
                done += 1;
                submit(drive, at);
            }
        }
    }
    done as f64 / seconds as f64
}

fn new(name: &str, steady: bool) -> Ssd {
    let profile = profile(name);
    Ssd::new(profile, SIZE, profile.cache, steady, 1)
}

fn close(measured: f64, published: f64, within: f64, what: &str) {
    eprintln!("{what}: {measured:.0} against {published:.0}");
    assert!((measured / published - 1.0).abs() <= within, "{what}: {measured} instead of {published}");
}

#[test]
fn rates_are_the_data_sheets() {
    close(rate(&mut new("ssd-sata", true), Op::Read, 1, 8, true, 1), 13_000.0, 0.05, "sata read 1");
    close(rate(&mut new("ssd-sata", true), Op::Read, 32, 8, true, 1), 98_000.0, 0.1, "sata read 32");
    close(rate(&mut new("ssd-sata", false), Op::Write, 1, 8, true, 1), 36_000.0, 0.05, "sata write 1");
    close(
        rate(&mut new("ssd-sata", true), Op::Read, 8, 2048, false, 1) * 1.048_576,
        560.0,
        0.05,
        "sata MB/s",
    );
    close(
        rate(&mut new("ssd-sata", false), Op::Write, 8, 2048, false, 1) * 1.048_576,
        530.0,
        0.05,
        "sata w MB/s",
    );
    close(rate(&mut new("ssd-nvme", true), Op::Read, 1, 8, true, 1), 19_000.0, 0.05, "nvme read 1");
    close(rate(&mut new("ssd-nvme", false), Op::Write, 1, 8, true, 1), 60_000.0, 0.05, "nvme write 1");
    close(
        rate(&mut new("ssd-nvme", false), Op::Write, 8, 2048, false, 3) * 1.048_576,
        1700.0,
        0.1,
        "nvme w MB/s",
    );
    close(rate(&mut new("ssd-nvme-dc", true), Op::Read, 1, 8, true, 1), 11_765.0, 0.05, "dc read 1");
    close(rate(&mut new("ssd-nvme-dc", true), Op::Write, 32, 8, true, 10), 30_500.0, 0.2, "dc steady write");
    close(rate(&mut new("sd-a1", true), Op::Read, 1, 8, true, 2), 1500.0, 0.05, "sd read");
    close(rate(&mut new("sd-a1", false), Op::Write, 1, 8, true, 2), 500.0, 0.05, "sd write");
}

#[test]
fn a_write_larger_than_the_rest_of_the_buffer_waits_for_a_program_and_no_longer() {
    for profile in PROFILES {
        for cache in [Cache::None, Cache::Volatile, Cache::Protected] {
            let mut drive = Ssd::new(profile, SIZE, cache, false, 1);
            drive.submit(0, &Request { id: 1, op: Op::Write, sector: 0, sectors: 8 });
            let large = profile.buffer.min(SIZE / 16) / 512;
            drive.submit(0, &Request { id: 2, op: Op::Write, sector: 8, sectors: large });
            let mut events = Vec::new();
            drive.advance(60 * SECOND, &mut events);
            let done = events.iter().filter(|event| matches!(event, Event::Done { .. })).count();
            assert_eq!(done, 2, "{} {cache:?}", profile.name);
        }
    }
}

#[test]
fn a_flush_waits_for_the_flash_unless_protected() {
    for (cache, quick) in [(Cache::Volatile, false), (Cache::Protected, true)] {
        let mut drive = Ssd::new(profile("ssd-sata"), SIZE, cache, false, 1);
        drive.submit(0, &Request { id: 1, op: Op::Write, sector: 0, sectors: 8 });
        drive.submit(50_000, &Request { id: 2, op: Op::Flush, sector: 0, sectors: 0 });
        let mut events = Vec::new();
        drive.advance(SECOND, &mut events);
        let at = events.iter().find_map(|event| match event {
            Event::Done { id: 2, at } => Some(*at),
            _ => None,
        });
        assert_eq!(at.expect("done") < 150_000, quick);
        let persisted = events.iter().position(|event| matches!(event, Event::Persisted { .. }));
        let flushed = events.iter().position(|event| matches!(event, Event::Done { id: 2, .. }));
        assert!(persisted < flushed);
    }
}

#[test]
fn everything_is_answered_once() {
    for seed in 0..10 {
        for cache in [Cache::Volatile, Cache::None, Cache::Protected] {
            let mut drive = Ssd::new(profile("ssd-sata"), 64 << 20, cache, seed % 2 == 0, seed);
            let mut random = Stream::new(seed, 3);
            let (mut pending, mut events) = (BTreeSet::new(), Vec::new());
            for id in 1..5000_u64 {
                let op = match random.below(12) {
                    0 => Op::Flush,
                    1 => Op::Discard,
                    2..6 => Op::Read,
                    _ => Op::Write,
                };
                let sector = random.below((64 << 20) / 512 - 512);
                drive.submit(id * 40_000, &Request { id, op, sector, sectors: 1 + random.below(511) });
                pending.insert(id);
                drive.advance((id + 1) * 40_000, &mut events);
            }
            drive.advance(1000 * SECOND, &mut events);
            for event in events {
                if let Event::Done { id, .. } = event {
                    assert!(pending.remove(&id), "{id} is answered twice");
                }
            }
            assert!(pending.is_empty(), "{cache:?}: {pending:?}");
        }
    }
}

/// Return the median time of random reads if the drive is always advanced `ahead` ns ahead of the clock. A server does
/// that to compensate for the delay of its answers.
fn median_looking_ahead(ahead: Nanos) -> Nanos {
    let mut drive = Ssd::new(&PROFILES[0], 1 << 28, Cache::Volatile, true, 1);
    let mut random = Stream::new(1, 7);
    let (mut times, mut events, mut started) = (Vec::new(), Vec::new(), Vec::new());
    let mut arrivals = std::collections::BinaryHeap::from(vec![std::cmp::Reverse(0); 8]);
    while started.len() < 20_000 {
        let arrival = arrivals.peek().map(|first| first.0);
        let due = drive.next_event().map(|at| at.saturating_sub(ahead));
        let now = arrival.into_iter().chain(due).min().expect("something is under way");
        drive.advance(now + ahead, &mut events);
        for event in events.drain(..) {
            let Event::Done { id, at } = event else { continue };
            times.push(at - started[usize::try_from(id).unwrap_or(0)]);
            arrivals.push(std::cmp::Reverse(at));
        }
        if arrival == Some(now) {
            arrivals.pop();
            let request = Request {
                id: started.len() as u64,
                op: Op::Read,
                sector: random.below(1 << 16) * 8,
                sectors: 8,
            };
            started.push(now);
            drive.submit(now, &request);
        }
    }
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn looking_ahead_changes_no_time() {
    let (plain, ahead) = (median_looking_ahead(0), median_looking_ahead(30_000));
    assert!(plain.abs_diff(ahead) <= plain / 50, "{plain} and {ahead} ns");
}

#[test]
fn a_disk_whose_map_has_too_few_numbers_is_refused() {
    let name = "ssd-nvme-dc";
    let refuses = fslab_disk_model::profile::refuses;
    assert_eq!((refuses(name, 12 << 40), refuses("hdd-7200", 1 << 50)), (None, None));
    assert!(refuses(name, 15_360_000_000_000).is_some_and(|why| why.contains("too large")));
    assert!(refuses(name, 1 << 50).is_some());
}

#[test]
fn an_idle_disk_empties_its_fast_cache_although_pages_wait_for_a_full_unit() {
    let mut drive = new("ssd-sata", false);
    let mut events = Vec::new();
    for id in 0..65 {
        drive.submit(0, &Request { id, op: Op::Write, sector: id * 8, sectors: 8 });
    }
    drive.advance(1_000_000_000, &mut events);
    let fast = |drive: &Ssd| drive.report()["slc_bytes"].as_u64().expect("a number");
    assert!(fast(&drive) > 0);
    drive.advance(61_000_000_000, &mut events);
    drive.submit(61_000_000_000, &Request { id: 99, op: Op::Read, sector: 0, sectors: 8 });
    assert_eq!(fast(&drive), 0);
}
