//! Tests of shingled recording: a fast start, the fall when the persistent cache is full, recovery when idle, and
//! streams in place.

use std::collections::BTreeMap;

use fslab_disk_model::Nanos;
use fslab_disk_model::drive::{Cache, Drive, Event, Op, Request};
use fslab_disk_model::hdd::{Hdd, PROFILES, Profile, Shingled, Shingles};
use fslab_engine::random::Stream;

const SECOND: Nanos = 1_000_000_000;
const BYTES: u64 = 4 << 30;
const PAGES: u64 = BYTES / 4096;
const BAND: u64 = 30 << 20;
const SMALL: Shingles = Shingles { band: BAND, cache: 64 << 20, extents: 4000, idle_ms: 1000.0 };

fn profile() -> &'static Profile {
    PROFILES.iter().find(|profile| profile.shingles.is_some()).expect("a shingled profile")
}

fn drive(cache: Cache) -> Shingled {
    Shingled::new(profile(), SMALL, BYTES, cache, 16 << 20, 1)
}

/// Runs one request after another until the time is over; how many were answered.
fn keep(
    drive: &mut dyn Drive,
    id: &mut u64,
    from: Nanos,
    until: Nanos,
    mut next: impl FnMut() -> (Op, u64, u64),
) -> u64 {
    let (mut events, mut done) = (Vec::new(), 0);
    let mut submit = |drive: &mut dyn Drive, now| {
        *id += 1;
        let (op, sector, sectors) = next();
        drive.submit(now, &Request { id: *id, op, sector, sectors });
    };
    submit(drive, from);
    while let Some(now) = drive.next_event().filter(|now| *now <= until) {
        drive.advance(now, &mut events);
        for event in events.drain(..) {
            if let Event::Done { at, .. } = event {
                done += 1;
                submit(drive, at);
            }
        }
    }
    done
}

/// Lets time pass until nothing happens by itself.
fn rest(drive: &mut dyn Drive) -> Nanos {
    let (mut events, mut last) = (Vec::new(), 0);
    while let Some(now) = drive.next_event() {
        last = now;
        drive.advance(now, &mut events);
    }
    last
}

fn bytes(drive: &dyn Drive, what: &str) -> u64 {
    drive.report()[what].as_u64().expect("a figure")
}

#[test]
fn random_writes_are_fast_until_the_persistent_cache_is_full() {
    let (mut drive, mut random, mut id) = (drive(Cache::Volatile), Stream::new(3, 3), 0);
    let mut write = || (Op::Write, random.below(PAGES) * 8, 8);
    let first = keep(&mut drive, &mut id, 0, SECOND / 2, &mut write);
    assert!(first >= 2000, "{first}: a log is written from front to back");
    keep(&mut drive, &mut id, SECOND / 2, 5 * SECOND, &mut write);
    let cleaned = bytes(&drive, "bands_cleaned");
    let later = keep(&mut drive, &mut id, 5 * SECOND, 65 * SECOND, &mut write) / 60;
    println!("{first} in half a second, then {later} a second");
    assert!(later < 200, "{later} a second: each band frees what is cached of it");
    let bands = bytes(&drive, "bands_cleaned") - cleaned;
    let seconds = 60.0 / bands as f64;
    println!("{seconds} s a band");
    assert!((0.3..1.6).contains(&seconds), "{seconds} s a band");
    let idle = rest(&mut drive);
    assert_eq!(bytes(&drive, "persistent_cache_bytes"), 0, "a drive without requests cleans all of it");
    let again = keep(&mut drive, &mut id, idle, idle + SECOND / 2, &mut write);
    assert!(again >= 2000, "{again}");
}

#[test]
fn a_stream_is_written_in_place() {
    let rate = |drive: &mut dyn Drive| {
        let (mut id, mut at) = (0, 0);
        let next = || {
            at += 2048;
            (Op::Write, (at - 2048) % (BYTES / 512), 2048)
        };
        keep(drive, &mut id, 0, 10 * SECOND, next)
    };
    let mut shingled = drive(Cache::Volatile);
    let plain = rate(&mut Hdd::new(profile(), BYTES, Cache::Volatile, 16 << 20, 1));
    let measured = rate(&mut shingled);
    assert!(measured * 100 >= plain * 95, "{measured} against {plain} MiB");
    assert_eq!(bytes(&shingled, "bands_cleaned"), 0);
    assert_eq!(bytes(&shingled, "persistent_cache_bytes"), 0);
    // Where it ends within a band, the tracks behind it are written again.
    shingled.submit(11 * SECOND, &Request { id: 1 << 40, op: Op::Write, sector: 8 * 1000, sectors: 8 });
    rest(&mut shingled);
    assert_eq!(bytes(&shingled, "bands_cleaned"), 2);
}

#[test]
fn reads_find_what_is_cached() {
    let mut drive = drive(Cache::None);
    let write = |id, sector| Request { id, op: Op::Write, sector, sectors: 8 };
    drive.submit(0, &write(1, 80_000));
    drive.submit(0, &write(2, 80_032));
    drive.submit(SECOND / 2, &Request { id: 3, op: Op::Read, sector: 79_992, sectors: 64 });
    let mut events = Vec::new();
    drive.advance(SECOND, &mut events);
    let done: Vec<_> = events.iter().filter(|event| matches!(event, Event::Done { .. })).collect();
    assert_eq!(done.len(), 3);
    assert!(
        bytes(&drive, "media_reads") + bytes(&drive, "cache_hits") >= 5,
        "three parts in place, two in the log"
    );
}

/// What a flush covers was reported as on the medium before the flush is answered; each request is answered once.
#[test]
fn flushes_cover_what_was_answered() {
    for cache in [Cache::Volatile, Cache::None, Cache::Protected] {
        for seed in 0..20 {
            flushes_cover(cache, seed);
        }
    }
}

fn flushes_cover(cache: Cache, seed: u64) {
    let shingles = Shingles { band: 1 << 20, cache: 2 << 20, extents: 60, idle_ms: 20.0 };
    let mut drive = Shingled::new(profile(), shingles, 64 << 20, cache, 4 << 20, 1);
    let mut random = Stream::new(seed, 1);
    let (mut newest, mut medium): (BTreeMap<u64, u64>, BTreeMap<u64, u64>) = Default::default();
    let mut due: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    let (mut open, mut events, mut now, mut stream) = (BTreeMap::new(), Vec::new(), 0, 0);
    for id in 1..=400 {
        let gap = if random.below(20) == 0 { 200_000_000 } else { 2_000_000 };
        now += random.below(gap);
        let (op, sector, sectors) = match random.below(10) {
            0 => (Op::Flush, 0, 0),
            1 | 2 => (Op::Read, random.below(100_000), 1 + random.below(500)),
            3..6 => {
                stream = if random.below(8) == 0 { random.below(60) * 2048 } else { stream + 256 };
                (Op::Write, stream % 130_000, 256)
            }
            _ => (Op::Write, random.below(6000), 1 + random.below(40)),
        };
        if op == Op::Flush {
            due.insert(id, newest.clone());
        }
        open.insert(id, (op, sector, sectors));
        drive.submit(now, &Request { id, op, sector, sectors });
        drive.advance(now, &mut events);
        let last = id == 400;
        loop {
            for event in events.drain(..) {
                match event {
                    Event::Done { id, .. } => {
                        let (op, sector, sectors) = open.remove(&id).expect("answered once");
                        if op == Op::Write {
                            for sector in sector..sector + sectors {
                                let newest = newest.entry(sector).or_default();
                                *newest = id.max(*newest);
                            }
                        }
                        for (sector, write) in due.remove(&id).unwrap_or_default() {
                            let found = medium.get(&sector).copied().unwrap_or(0);
                            assert!(
                                found >= write,
                                "{cache:?} {seed}: sector {sector} has {found}, not {write}"
                            );
                        }
                    }
                    Event::Persisted { sector, sectors, id } => {
                        for sector in sector..sector + sectors {
                            let found = medium.entry(sector).or_default();
                            *found = id.max(*found);
                        }
                    }
                }
            }
            let Some(next) = drive.next_event().filter(|_| last) else { break };
            drive.advance(next, &mut events);
        }
    }
    assert!(open.is_empty(), "{cache:?} {seed}: {open:?}");
    assert_eq!(bytes(&drive, "persistent_cache_bytes"), 0);
}
