//! `small-files`, run through the binary.

use std::fs;
use std::process::Stdio;

use crate::common::{self, assert_same_shape, engine, golden, run, succeed};
use tempfile::tempdir;

#[test]
fn nothing_is_left_behind() {
    let directory = tempdir().unwrap();
    let found =
        succeed(&["small-files", directory.path().to_str().unwrap(), "--files", "100", "--threads", "2"]);
    assert_eq!(found["command"], "small-files");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn counts_and_bytes_are_exact_for_any_number_of_threads() {
    for threads in ["1", "3", "7"] {
        let directory = tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let found = succeed(&[
            "small-files",
            path,
            "--files",
            "101",
            "--size",
            "5000",
            "--dirs",
            "4",
            "--threads",
            threads,
        ]);
        for operation in found["operations"].as_array().unwrap() {
            assert_eq!(operation["count"], 101);
            assert_eq!(operation["errors"], 0);
        }
        assert_eq!(found["operations"][0]["bytes"], 101 * 5000);
        assert!(found["operations"][1]["bytes"].is_null());
        assert!(found["operations"][1]["sync_seconds"].is_null());
    }
}

#[test]
fn each_operation_can_be_its_own_process() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    for operations in ["create", "stat,read", "read", "delete"] {
        succeed(&["small-files", path, "--files", "50", "--dirs", "3", "--operations", operations]);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn lengths_are_drawn_alike_in_every_step_and_order() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let drawn = ["--files", "300", "--size", "1k", "--max-size", "9k", "--seed", "5", "--dirs", "3"];
    let made = succeed(&[&["small-files", path, "--operations", "create"][..], &drawn].concat());
    let mut lengths: Vec<u64> = fs::read_dir(directory.path().join("fslab-small-files"))
        .unwrap()
        .flat_map(|each| fs::read_dir(each.unwrap().path()).unwrap())
        .map(|file| file.unwrap().metadata().unwrap().len())
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 200, "{} different lengths", lengths.len());
    assert!(lengths[0] >= 1024 && lengths[lengths.len() - 1] <= 9 * 1024);
    for order in ["created", "random", "reverse"] {
        let steps = ["small-files", path, "--operations", "stat,read", "--order", order, "--threads", "2"];
        let read = succeed(&[&steps[..], &drawn].concat());
        assert_eq!(read["operations"][1]["bytes"], made["operations"][0]["bytes"]);
    }
    let other = ["small-files", path, "--operations", "read", "--seed", "6"];
    let (refused, status) = run(&[&other[..], &drawn[..6], &drawn[8..]].concat());
    assert_ne!(status, Some(0), "another seed draws other lengths: {refused:#}");
    succeed(&[&["small-files", path, "--operations", "delete", "--order", "random"][..], &drawn].concat());
}

#[test]
fn a_range_of_lengths_has_its_ends_in_order() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let (refused, status) = run(&["small-files", path, "--size", "4k", "--max-size", "1k"]);
    assert_ne!(status, Some(0));
    assert!(
        refused["error"]["message"].to_string().contains("--max-size is smaller than --size"),
        "{refused:#}"
    );
}

#[test]
fn contents_depend_on_the_seed_and_on_nothing_else() {
    let read = |seed: &str, threads: &str| {
        let directory = tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let arguments =
            ["small-files", path, "--files", "20", "--dirs", "2", "--size", "3m", "--operations", "create"];
        succeed(&[&arguments[..], &["--seed", seed, "--threads", threads]].concat());
        let work = directory.path().join("fslab-small-files/d0000000001");
        fs::read(work.join("f0000000015")).unwrap()
    };
    let first = read("1", "1");
    assert_eq!(first.len(), 3 << 20);
    assert!(first == read("1", "4"));
    assert!(first != read("2", "1"));
}

#[test]
fn create_refuses_the_files_of_an_earlier_run() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    succeed(&["small-files", path, "--files", "5", "--operations", "create"]);
    let (found, status) = run(&["small-files", path, "--files", "5", "--operations", "create"]);
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"exists".into()));
    succeed(&["small-files", path, "--files", "5", "--operations", "read"]);
}

#[test]
fn a_changed_file_is_noticed() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    succeed(&["small-files", path, "--files", "5", "--operations", "create"]);
    fs::write(directory.path().join("fslab-small-files/d0000000000/f0000000003"), b"short").unwrap();
    for operation in ["stat", "read"] {
        let (found, _) = run(&["small-files", path, "--files", "5", "--operations", operation]);
        assert_eq!(found["error"]["kind"], "content");
    }
}

#[test]
fn a_missing_directory_and_senseless_parameters_are_errors() {
    let (found, status) = run(&["small-files", "/nonexistent"]);
    assert_same_shape(&found, &golden("error.json"), "document");
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"not_found".into()));
    let (found, _) = run(&["small-files", "/nonexistent", "--threads", "0"]);
    assert_eq!(found["error"]["kind"], "invalid");
}

#[test]
fn a_signal_ends_it_quickly() {
    let directory = tempdir().unwrap();
    let mut child = engine()
        .args([
            "small-files",
            directory.path().to_str().unwrap(),
            "--files",
            "500000",
            "--size",
            "0",
            "--json",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while fs::read_dir(directory.path().join("fslab-small-files")).is_err() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    common::send(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn long_files_of_drawn_lengths_are_read_whole() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let drawn = ["--files", "6", "--size", "1k", "--max-size", "5m", "--seed", "3"];
    let all = succeed(&[&["small-files", path, "--operations", "create,read,delete"][..], &drawn].concat());
    assert_eq!(all["operations"][1]["bytes"], all["operations"][0]["bytes"]);
}
