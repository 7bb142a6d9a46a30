//! Tests of the hard disk: published rates of its class, reproducible times, and the completion of all requests.

use fslab_disk_model::Nanos;
use fslab_disk_model::drive::{Cache, Drive, Event, Op, Request};
use fslab_disk_model::hdd::{Hdd, PROFILES, Profile};
use fslab_disk_model::predict::{Load, predict};
use fslab_engine::random::Stream;

const SECOND: Nanos = 1_000_000_000;
const TB: u64 = 1_000_000_000_000;

fn profile(name: &str) -> &'static Profile {
    PROFILES.iter().find(|profile| profile.name == name).expect("a profile")
}

fn drive(name: &str, cache: Cache) -> Hdd {
    Hdd::new(profile(name), profile(name).capacity, cache, 64 << 20, 1)
}

/// Keep `depth` requests in flight for `seconds`, as fio does. Returns the times of completion.
fn keep(
    drive: &mut dyn Drive,
    depth: u64,
    seconds: u64,
    mut next: impl FnMut(u64) -> (Op, u64, u64),
) -> Vec<Nanos> {
    let mut done = Vec::new();
    let mut id = 0;
    let mut submit = |drive: &mut dyn Drive, now| {
        id += 1;
        let (op, sector, sectors) = next(id - 1);
        drive.submit(now, &Request { id, op, sector, sectors });
    };
    for _ in 0..depth {
        submit(drive, 0);
    }
    let mut events = Vec::new();
    while let Some(now) = drive.next_event().filter(|now| *now <= seconds * SECOND) {
        drive.advance(now, &mut events);
        for event in events.drain(..) {
            if let Event::Done { at, .. } = event {
                done.push(at);
                submit(drive, at);
            }
        }
    }
    done
}

fn random_rate(name: &str, cache: Cache, op: Op, depth: u64) -> f64 {
    let mut random = Stream::new(5, 5);
    let pages = profile(name).capacity / 4096;
    let done = keep(&mut drive(name, cache), depth, 60, |_| (op, random.below(pages) * 8, 8));
    done.len() as f64 / 60.0
}

#[test]
fn random_reads_are_those_of_the_class() {
    let (one, many) = (
        random_rate("hdd-7200", Cache::Volatile, Op::Read, 1),
        random_rate("hdd-7200", Cache::Volatile, Op::Read, 32),
    );
    println!("{one} {many}");
    assert!((70.0..95.0).contains(&one), "{one}");
    assert!((170.0..215.0).contains(&many), "{many}");
}

#[test]
fn sequential_rates_are_the_data_sheets() {
    for (start, rate) in [(0, 175.0), (profile("hdd-7200").capacity / 512 - (8 << 20), 83.0)] {
        for (op, sectors, depth) in [(Op::Read, 2048, 1), (Op::Read, 8, 1), (Op::Write, 2048, 8)] {
            let mut drive = Hdd::new(profile("hdd-7200"), TB, Cache::Volatile, 64 << 20, 1);
            let seconds = 12;
            let done = keep(&mut drive, depth, seconds, |id| (op, start + id * sectors, sectors));
            let late = done.iter().filter(|at| **at > 6 * SECOND).count(); // the cache is full by then
            let measured = late as f64 * sectors as f64 * 512.0 / 6e6;
            assert!(
                (measured / rate - 1.0).abs() < 0.06,
                "{op:?} {sectors} {depth}: {measured} of {rate} MB/s"
            );
        }
    }
}

#[test]
fn cached_writes_go_back_faster_than_one_by_one() {
    let (none, cached) = (
        random_rate("hdd-7200", Cache::None, Op::Write, 1),
        random_rate("hdd-7200", Cache::Volatile, Op::Write, 1),
    );
    assert!((60.0..90.0).contains(&none), "{none}");
    assert!((1.5 * none..6.0 * none).contains(&cached), "{none} {cached}");
}

#[test]
fn a_flush_costs_a_revolution_or_so() {
    let mut drive = drive("hdd-7200", Cache::Volatile);
    let done =
        keep(&mut drive, 1, 10, |id| if id % 2 == 0 { (Op::Write, id * 4, 8) } else { (Op::Flush, 0, 0) });
    let pairs = done.len() as f64 / 2.0 / 10.0;
    assert!((55.0..125.0).contains(&pairs), "{pairs} of write and flush a second");
}

#[test]
fn the_same_requests_take_the_same_times() {
    let run = || {
        let mut random = Stream::new(9, 9);
        keep(&mut drive("hdd-7200", Cache::Volatile), 8, 20, |_| {
            let op = if random.below(2) == 0 { Op::Read } else { Op::Write };
            (op, random.below(1 << 27) * 8, 8 * (1 + random.below(64)))
        })
    };
    assert_eq!(run(), run());
}

#[test]
fn everything_is_answered_once_and_a_flush_covers_what_was_before() {
    (0..20).for_each(answered_once);
}

fn answered_once(seed: u64) {
    let mut random = Stream::new(seed, 3);
    let mut drive = drive("hdd-7200", Cache::Volatile);
    let mut pending = std::collections::BTreeMap::new();
    let mut events = Vec::new();
    let mut dirty = std::collections::BTreeMap::new();
    for id in 1..3000_u64 {
        let op = match random.below(4) {
            0 => Op::Read,
            1 => Op::Flush,
            _ => Op::Write,
        };
        let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (random.below(4096) * 8, 8) };
        drive.submit(id * 3_000_000, &Request { id, op, sector, sectors });
        pending.insert(id, op);
        if op == Op::Write {
            dirty.insert(sector, id);
        }
        drive.advance((id + 1) * 3_000_000, &mut events);
        settle(&mut events, &mut pending, &mut dirty);
    }
    drive.advance(u64::MAX / 2, &mut events);
    settle(&mut events, &mut pending, &mut dirty);
    assert!(pending.is_empty(), "{pending:?}");
}

fn settle(
    events: &mut Vec<Event>,
    pending: &mut std::collections::BTreeMap<u64, Op>,
    dirty: &mut std::collections::BTreeMap<u64, u64>,
) {
    for event in events.drain(..) {
        match event {
            Event::Persisted { sector, sectors, id } => {
                dirty.retain(|at, last| !(sector..sector + sectors).contains(at) || *last > id);
            }
            Event::Done { id, .. } => {
                if pending.remove(&id).expect("answered once") == Op::Flush {
                    assert!(dirty.values().all(|last| *last > id), "unflushed before {id}: {dirty:?}");
                }
            }
        }
    }
}

/// A drive that stops reading ahead for a command that it has not interpreted yet waits for another revolution.
#[test]
fn sequential_reads_keep_pace_with_the_host_whenever_it_asks() {
    for (block, depth) in
        [64 << 10, 128 << 10, 1 << 20].into_iter().flat_map(|block| [1, 2, 3, 4, 8].map(|n| (block, n)))
    {
        for think_us in [0, 50, 100, 150, 200, 250, 275, 300, 350, 500, 1000, 3000, 8000] {
            let load = Load {
                op: Op::Read,
                block,
                depth,
                random: false,
                start: 0,
                end: 1 << 36,
                time: 3 * SECOND,
                think: think_us * 1000,
                seed: 1,
            };
            let rate = predict(&mut drive("hdd-7200", Cache::Volatile), &load).rate * block as f64 / 1e6;
            // 0.1 ms for a command, and the transfer from the cache.
            let request_us = think_us as f64 + 100.0 + block as f64 / 550.0;
            let least = (depth as f64 * block as f64 / request_us).min(173.0);
            assert!(
                rate > 0.95 * least,
                "{block} bytes, depth {depth}, {think_us} us: {rate} MB/s instead of {least}"
            );
        }
    }
}

/// Submit requests at these times in milliseconds. Returns the time in milliseconds at which each was answered.
fn answered(drive: &mut Hdd, requests: &[(u64, Op, u64)]) -> Vec<u64> {
    let mut done = vec![0; requests.len()];
    let mut events = Vec::new();
    for (id, (at, op, sector)) in requests.iter().enumerate() {
        let (id, sectors) = (id as u64, if *op == Op::Flush { 0 } else { 8 });
        drive.submit(at * 1_000_000, &Request { id, op: *op, sector: *sector, sectors });
    }
    drive.advance(10 * SECOND, &mut events);
    for event in events {
        if let Event::Done { id, at } = event {
            done[usize::try_from(id).expect("few")] = at / 1_000_000;
        }
    }
    done
}

#[test]
fn a_flush_of_a_protected_cache_has_nothing_to_do() {
    let far = TB / 512 / 2 / 8 * 8;
    let requests = [(0, Op::Write, far), (0, Op::Write, 8), (1, Op::Flush, 0), (1, Op::Write, 800)];
    let protected = answered(&mut drive("hdd-7200", Cache::Protected), &requests);
    assert!(protected.iter().all(|at| *at <= 1), "{protected:?}");
    let volatile = answered(&mut drive("hdd-7200", Cache::Volatile), &requests);
    assert!(volatile[2] > 5, "{volatile:?}");
}

#[test]
fn data_that_is_written_again_while_it_goes_back_is_not_on_the_medium_yet() {
    let mut once = drive("hdd-7200", Cache::Volatile);
    answered(&mut once, &[(0, Op::Write, 8000), (1, Op::Flush, 0)]);
    let mut twice = drive("hdd-7200", Cache::Volatile);
    let mut events = Vec::new();
    for (id, at) in [(0, 0), (1, 1)] {
        twice.submit(at * 1_000_000, &Request { id, op: Op::Write, sector: 8000, sectors: 8 });
    }
    twice.submit(1_100_000, &Request { id: 2, op: Op::Flush, sector: 0, sectors: 0 });
    twice.advance(10 * SECOND, &mut events);
    let newest = |id| Event::Persisted { sector: 8000, sectors: 8, id };
    let place = |wanted: Event| events.iter().position(|event| *event == wanted);
    let flushed = events.iter().position(|event| matches!(event, Event::Done { id: 2, .. }));
    assert!(place(newest(0)) < place(newest(1)), "{events:?}");
    assert!(place(newest(1)).is_some() && place(newest(1)) < flushed, "{events:?}");
    let writes = |drive: &Hdd| drive.report()["media_writes"].clone();
    assert_eq!((writes(&once), writes(&twice)), (1.into(), 2.into()));
}
