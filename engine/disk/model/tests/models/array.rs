//! Tests of striped drives: the mapping, a queue and an actuator for each, and the completion of all parts.

use std::sync::{Arc, Mutex};

use fslab_disk_model::array::Array;
use fslab_disk_model::drive::{Cache, Drive, Event, Op, Request};
use fslab_disk_model::hdd::{Hdd, PROFILES};
use fslab_disk_model::plain::Plain;
use fslab_disk_model::predict::{Load, predict};
use fslab_disk_model::{Nanos, SECTOR};

const SECOND: Nanos = 1_000_000_000;
const GB: u64 = 1_000_000_000;

/// A drive that notes what it is asked.
struct Noting(Plain, Arc<Mutex<Vec<Request>>>);

impl Drive for Noting {
    fn submit(&mut self, now: Nanos, request: &Request) {
        self.1.lock().expect("no panic").push(*request);
        self.0.submit(now, request);
    }
    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }
    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        self.0.advance(now, events);
    }
    fn cut(&mut self) {
        self.0.cut();
    }
    fn report(&self) -> serde_json::Value {
        self.0.report()
    }
    fn reset(&mut self) {
        self.0.reset();
    }
}

type Notes = Vec<Arc<Mutex<Vec<Request>>>>;

fn noting(count: usize, chunk: u64) -> (Array, Notes) {
    let notes: Notes = (0..count).map(|_| Arc::default()).collect();
    let drives = notes
        .iter()
        .map(|note| Box::new(Noting(Plain::new(Cache::None, 0), Arc::clone(note))) as Box<dyn Drive>);
    (Array::new(drives.collect(), chunk), notes)
}

fn ask(drive: &mut dyn Drive, op: Op, sector: u64, sectors: u64) -> Vec<Event> {
    drive.submit(0, &Request { id: 1, op, sector, sectors });
    let mut events = Vec::new();
    drive.advance(1, &mut events);
    events
}

/// The formula of `raid0_map_sector` and `stripe_map_sector`: the drive, and the sector on it.
fn documented(sector: u64, count: u64, chunk: u64) -> (usize, u64) {
    let number = sector / chunk;
    (usize::try_from(number % count).expect("small"), number / count * chunk + sector % chunk)
}

#[test]
fn every_sector_lies_where_md_and_lvm_put_it() {
    for (count, chunk) in [(2_usize, 8), (3, 32), (5, 128), (5, 8)] {
        for sector in 0..chunk * count as u64 * 3 {
            let (mut array, notes) = noting(count, chunk);
            let events = ask(&mut array, Op::Write, sector, 1);
            let (member, there) = documented(sector, count as u64, chunk);
            for (number, note) in notes.iter().enumerate() {
                let found: Vec<_> = note.lock().expect("no panic").iter().map(|each| each.sector).collect();
                assert_eq!(found, if number == member { vec![there] } else { vec![] });
            }
            assert!(events.contains(&Event::Persisted { sector, sectors: 1, id: 1 }), "{events:?}");
        }
    }
}

#[test]
fn a_request_has_one_part_for_each_drive_and_is_done_once() {
    for (count, chunk) in [(2_usize, 8), (3, 16), (5, 8)] {
        let row = chunk * count as u64;
        for (start, length) in (0..row * 2).flat_map(|start| (1..row * 2).map(move |length| (start, length)))
        {
            let (mut array, notes) = noting(count, chunk);
            let events = ask(&mut array, Op::Write, start, length);
            let mut expected = vec![Vec::new(); count];
            for sector in start..start + length {
                let (member, there) = documented(sector, count as u64, chunk);
                expected[member].push(there);
            }
            for (note, expected) in notes.iter().zip(expected) {
                let note = note.lock().expect("no panic");
                assert!(note.len() <= 1);
                assert_eq!(note.iter().flat_map(|one| one.sector..one.end()).collect::<Vec<_>>(), expected);
            }
            let done = events.iter().filter(|event| matches!(event, Event::Done { .. })).count();
            let mut persisted: Vec<_> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Persisted { sector, sectors, .. } => Some(*sector..sector + sectors),
                    Event::Done { .. } => None,
                })
                .flatten()
                .collect();
            persisted.sort_unstable();
            assert_eq!((done, persisted), (1, (start..start + length).collect()));
        }
    }
}

#[test]
fn a_flush_reaches_all_drives() {
    let (mut array, notes) = noting(3, 8);
    let events = ask(&mut array, Op::Flush, 0, 0);
    assert_eq!(events, [Event::Done { id: 1, at: 0 }]);
    assert!(notes.iter().all(|note| note.lock().expect("no panic").len() == 1));
}

#[test]
fn an_empty_request_is_done() {
    let (mut array, _) = noting(3, 8);
    assert!(ask(&mut array, Op::Read, 30, 0).contains(&Event::Done { id: 1, at: 0 }));
}

fn disks(count: u64, cache: Cache) -> Array {
    let profile = PROFILES.iter().find(|profile| profile.name == "hdd-7200").expect("a profile");
    let one = |seed| Box::new(Hdd::new(profile, 64 * GB, cache, 32 << 20, seed)) as Box<dyn Drive>;
    Array::new((1..=count).map(one).collect(), (64 << 10) / SECTOR)
}

fn rate(drive: &mut dyn Drive, op: Op, random: bool, block: u64, depth: u64, end: u64) -> f64 {
    let load = Load { op, block, depth, random, start: 0, end, time: 20 * SECOND, think: 0, seed: 3 };
    predict(drive, &load).rate
}

#[test]
fn each_drive_has_its_own_actuator_and_queue() {
    let random =
        |count, depth| rate(&mut disks(count, Cache::None), Op::Read, true, 4096, depth, count * 64 * GB);
    let alone = random(1, 1);
    assert!((random(5, 1) / alone - 1.0).abs() < 0.15, "one request at a time uses one actuator at a time");
    let gained = random(5, 40) / random(1, 8);
    assert!((4.0..5.5).contains(&gained), "five actuators with as many requests each: {gained}");
    let sequential =
        |count| rate(&mut disks(count, Cache::Volatile), Op::Read, false, 1 << 20, 16, count * 64 * GB);
    let gained = sequential(5) / sequential(1);
    assert!((4.0..5.2).contains(&gained), "five drives transfer at the same time: {gained}");
}

#[test]
fn a_flush_is_done_when_the_slowest_drive_is() {
    let mut array = disks(3, Cache::Volatile);
    let mut events = Vec::new();
    for id in 1..=6 {
        array.submit(0, &Request { id, op: Op::Write, sector: id * 1_000_003 * 8, sectors: 8 });
    }
    while let Some(next) = array.next_event().filter(|next| *next < SECOND / 1000) {
        array.advance(next, &mut events);
    }
    array.submit(SECOND / 1000, &Request { id: 7, op: Op::Flush, sector: 0, sectors: 0 });
    array.advance(10 * SECOND, &mut events);
    let flushed = events.iter().position(|event| matches!(event, Event::Done { id: 7, .. })).expect("done");
    let written = |event: &&Event| matches!(event, Event::Persisted { .. });
    assert_eq!(events[..flushed].iter().filter(written).count(), 6, "{events:?}");
}
