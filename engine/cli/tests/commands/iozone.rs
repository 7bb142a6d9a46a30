//! `iozone`, run through the binary.

use std::fs;

use crate::common::{run, succeed};
use serde_json::Value;
use tempfile::tempdir;

fn names(document: &Value) -> Vec<&str> {
    document["answer"]["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| test["name"].as_str().unwrap())
        .collect()
}

#[test]
fn all_six_tests_move_the_whole_file_and_leave_nothing() {
    for threads in ["1", "3"] {
        let directory = tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let found = succeed(&["iozone", path, "--size", "256k", "--record", "16k", "--threads", threads]);
        assert_eq!(names(&found), ["write", "rewrite", "read", "reread", "random-read", "random-write"]);
        let write = &found["operations"][0];
        let threads: u64 = threads.parse().unwrap();
        assert_eq!((&write["count"], &write["bytes"]), (&(16 * threads).into(), &(262_144 * threads).into()));
        for test in found["answer"]["tests"].as_array().unwrap() {
            assert!(test["bandwidth_bytes_per_second"].as_f64().unwrap() > 0.0);
            assert!(test["least_bytes"].as_u64().unwrap() <= 262_144);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn flush_and_close_are_system_calls_in_the_time() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let bare = succeed(&["iozone", path, "--tests", "0"]);
    assert_eq!(bare["operations"][0]["syscalls"].as_object().unwrap().keys().collect::<Vec<_>>(), ["write"]);
    let full = succeed(&["iozone", path, "--tests", "0", "--flush", "--close"]);
    let calls = full["operations"][0]["syscalls"].as_object().unwrap().keys().collect::<Vec<_>>();
    assert_eq!(calls, ["close", "fsync", "write"]);
}

#[test]
fn a_sweep_goes_over_sizes_and_the_records_that_fit() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let found = succeed(&["iozone", path, "--size", "8k,16k", "--record", "4k,8k,16k", "--no-retest"]);
    let tests = found["answer"]["tests"].as_array().unwrap();
    let writes = tests.iter().filter(|test| test["name"] == "write");
    let points: Vec<_> = writes
        .map(|test| (test["size_bytes"].as_u64().unwrap(), test["record_bytes"].as_u64().unwrap()))
        .collect();
    let (k4, k8, k16) = (4096, 8192, 16384);
    assert_eq!(points, [(k8, k4), (k8, k8), (k16, k4), (k16, k8), (k16, k16)]);
    assert_eq!(tests.len(), points.len() * 4, "without retests write, read, random-read, random-write");
}

#[test]
fn rounds_have_files_of_their_own_and_end_when_the_time_is_enough() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let of = |arguments: &[&str]| {
        succeed(&[&["iozone", path, "--size", "64k", "--threads", "2", "--keep"], arguments].concat())
    };
    let made = of(&["--tests", "0", "--rounds", "3"]);
    assert_eq!(fs::read_dir(directory.path().join("fslab-iozone/d0000000000")).unwrap().count(), 6);
    assert_eq!(made["operations"].as_array().unwrap().len(), 3 * 2);
    let (names, rates): (Vec<_>, Vec<_>) = made["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| (operation["name"].as_str().unwrap(), operation["bytes"].as_u64().unwrap()))
        .unzip();
    assert_eq!(names, ["write", "rewrite"].repeat(3));
    assert!(rates.iter().all(|&bytes| bytes <= 2 * 65_536));
    for (enough, rounds) in [("0", 1), ("1e9", 3)] {
        let found = of(&["--tests", "1,2", "--rounds", "3", "--enough", enough]);
        for test in found["answer"]["tests"].as_array().unwrap() {
            assert_eq!(test["rounds"], rounds, "{found:#}");
        }
    }
    let (missing, _) =
        run(&["iozone", path, "--size", "64k", "--threads", "2", "--tests", "1", "--rounds", "4"]);
    assert_eq!(missing["error"]["kind"], "not_found");
}

#[test]
fn files_that_are_kept_are_read_by_a_later_run() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let of = |arguments: &[&str]| run(&[&["iozone", path, "--size", "64k"], arguments].concat());
    assert_eq!(of(&["--tests", "1"]).0["error"]["kind"], "not_found");
    assert_eq!(of(&["--tests", "0", "--keep"]).1, Some(0));
    assert_eq!(of(&["--tests", "0"]).0["error"]["kind"], "exists");
    let data = fs::read(directory.path().join("fslab-iozone/d0000000000/f0000000000")).unwrap();
    assert_eq!(data.len(), 65_536);
    assert_eq!(data.iter().filter(|&&byte| byte != 0).count(), 8 * 16, "eight bytes of each page");
    assert_eq!(of(&["--tests", "1,2", "--keep"]).1, Some(0));
    let (short, _) = run(&["iozone", path, "--size", "128k", "--tests", "1"]);
    assert_eq!(short["error"]["kind"], "content");
    assert_eq!(of(&["--tests", "2"]).1, Some(0));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_written() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    for (arguments, kind) in [
        (&["--size", "10k", "--record", "4k"][..], "invalid"),
        (&["--size", "4k", "--record", "8k"], "invalid"),
        (&["--size", "8k,16k", "--keep"], "invalid"),
        (&["--size", "8k,16k", "--tests", "1"], "invalid"),
        (&["--threads", "0"], "invalid"),
        (&["--size", "1000t"], "no_space"),
    ] {
        let (refused, status) = run(&[&["iozone", path], arguments].concat());
        assert_eq!(
            (status, &refused["error"]["kind"]),
            (Some(1), &kind.into()),
            "{arguments:?}: {refused:#}"
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
