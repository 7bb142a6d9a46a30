//! A power cut during work: no drive completes a request from before the cut, and each drive serves all later requests.

use std::collections::BTreeSet;

use fslab_disk_model::Nanos;
use fslab_disk_model::array::Array;
use fslab_disk_model::drive::{Cache, Drive, Event, Op, Request};
use fslab_disk_model::ssd::Ssd;
use fslab_disk_model::{hdd, ssd};
use fslab_engine::random::Stream;

const BYTES: u64 = 256 << 20;
const HALF: u64 = 2000;
const GAP: Nanos = 50_000;

fn drives() -> Vec<(String, Box<dyn Drive>)> {
    let mut all: Vec<(String, Box<dyn Drive>)> = Vec::new();
    for cache in [Cache::Volatile, Cache::None, Cache::Protected] {
        for profile in hdd::PROFILES {
            let drive = hdd::Hdd::new(profile, BYTES, cache, 16 << 20, 1);
            all.push((format!("{} {cache:?}", profile.name), Box::new(drive)));
            let member =
                |seed| Box::new(hdd::Hdd::new(profile, BYTES / 4, cache, 16 << 20, seed)) as Box<dyn Drive>;
            let striped = Array::new((1..=4).map(member).collect(), 32); // smaller than many requests
            all.push((format!("four {} {cache:?}", profile.name), Box::new(striped)));
        }
        for profile in ssd::PROFILES {
            for steady in [false, true] {
                let drive = Ssd::new(profile, BYTES, cache, steady, 1);
                all.push((format!("{} {cache:?} steady: {steady}", profile.name), Box::new(drive)));
            }
        }
    }
    all
}

fn work(drive: &mut dyn Drive, first: u64, random: &mut Stream, events: &mut Vec<Event>) {
    for id in first..first + HALF {
        let op = match random.below(10) {
            0 => Op::Flush,
            1..4 => Op::Read,
            _ => Op::Write,
        };
        let sector = random.below(BYTES / 512 - 64);
        drive.submit(id * GAP, &Request { id, op, sector, sectors: 1 + random.below(63) });
        drive.advance((id + 1) * GAP, events);
    }
}

/// A drive that is reset answers as a new one, at other times: what it was prepared with is there again.
#[test]
fn a_reset_drive_is_a_new_one() {
    for ((name, mut used), (_, mut new)) in drives().into_iter().zip(drives()) {
        let (mut random, mut events) = (Stream::new(7, 1), Vec::new());
        work(&mut *used, 1, &mut random, &mut events);
        used.cut();
        for _ in 0..2 {
            used.reset();
        }
        let ignored = ["years_at_this_rate", "queued"];
        let report = |drive: &dyn Drive| {
            let mut found = drive.report();
            let members = found["members"].as_array().cloned().unwrap_or_else(|| vec![found.take()]);
            let kept = |mut one: serde_json::Value| {
                one.as_object_mut().unwrap().retain(|key, _| !ignored.contains(&key.as_str()));
                one
            };
            members.into_iter().map(kept).collect::<Vec<_>>()
        };
        assert_eq!(report(&*used), report(&*new), "{name}");
        for drive in [&mut used, &mut new] {
            work(&mut **drive, HALF + 1, &mut Stream::new(9, 1), &mut events);
        }
        assert_eq!(report(&*used), report(&*new), "{name}: also after the same work");
    }
}

#[test]
fn what_was_under_way_never_answers_and_what_comes_afterwards_does() {
    for (name, mut drive) in drives() {
        let (mut random, mut events) = (Stream::new(7, 1), Vec::new());
        work(&mut *drive, 1, &mut random, &mut events);
        let counted = |drive: &dyn Drive| drive.report()["host_bytes"].as_u64();
        let before = counted(&*drive);
        drive.cut();
        assert_eq!(counted(&*drive), before, "{name}: what is in the flash stays");
        events.clear();
        work(&mut *drive, HALF + 1, &mut random, &mut events);
        while let Some(now) = drive.next_event() {
            drive.advance(now, &mut events);
        }
        let mut pending: BTreeSet<u64> = (HALF + 1..=2 * HALF).collect();
        for event in events {
            if let Event::Done { id, .. } = event {
                assert!(pending.remove(&id), "{name}: {id} was lost with the power, or is answered twice");
            }
        }
        assert!(pending.is_empty(), "{name}: {} are never answered", pending.len());
    }
}
