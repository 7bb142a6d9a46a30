//! Prints what a model does under a steady load in virtual time, for `benches/disk.py`. Reads a JSON object with
//! `profile`, `size`, `write`, `block`, `depth`, `random`, `start`, `end`, `seconds`, `steady` and `seed`.

use std::io::Write;

use fslab_disk_model::drive::Op;
use fslab_disk_model::predict::{Load, predict};
use fslab_disk_model::profile::{self, Setup};
use serde::Deserialize;

#[derive(Deserialize)]
struct Wanted {
    profile: String,
    size: u64,
    write: bool,
    block: u64,
    depth: u64,
    random: bool,
    start: u64,
    end: u64,
    seconds: u64,
    steady: bool,
    seed: u64,
}

fn main() {
    let wanted: Wanted = serde_json::from_reader(std::io::stdin()).expect("a load as JSON");
    let setup = Setup {
        bytes: wanted.size,
        cache: None,
        cache_bytes: None,
        seed: wanted.seed,
        steady: wanted.steady,
    };
    let mut built = profile::build(Some(&wanted.profile), &setup).expect("a known profile");
    let load = Load {
        op: if wanted.write { Op::Write } else { Op::Read },
        block: wanted.block,
        depth: wanted.depth,
        random: wanted.random,
        start: wanted.start,
        end: wanted.end,
        time: wanted.seconds * 1_000_000_000,
        think: 0,
        seed: wanted.seed,
    };
    let found = predict(&mut *built.drive, &load);
    let answer = serde_json::json!({
        "rate": found.rate,
        "mb_s": found.rate * wanted.block as f64 / 1e6,
        "p50": found.quantile(50),
        "p99": found.quantile(99),
    });
    writeln!(std::io::stdout(), "{answer}").expect("standard output");
}
