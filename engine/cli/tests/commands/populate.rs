//! `populate`: the same specification gives the same tree, and the other commands agree with the manifest.

use std::fs;
use std::path::Path;

use crate::common::{run, snapshot, succeed};
use serde_json::Value;
use tempfile::tempdir;

const SMALL: [&str; 12] = [
    "--class",
    "small:300:20k",
    "--class",
    "large:3:2m:fixed",
    "--duplicates",
    "0.2",
    "--plant",
    "needle-one:0.2:3",
    "--plant",
    "needle-two:0.1",
    "--fanout",
    "3",
];

fn populate(path: &Path, extra: &[&str]) -> Value {
    let files = ["populate", path.to_str().unwrap(), "--files-per-directory", "10"];
    succeed(&[&files[..], &SMALL, extra].concat())["answer"].clone()
}

#[test]
fn the_same_spec_gives_the_same_tree_with_any_number_of_threads() {
    let directory = tempdir().unwrap();
    let trees = ["1", "2", "7"].map(|threads| {
        let path = directory.path().join(threads);
        let manifest = populate(&path, &["--threads", threads]);
        (manifest, snapshot(&path))
    });
    assert!(trees[0] == trees[1] && trees[0] == trees[2]);
    let other = directory.path().join("other");
    assert_ne!(populate(&other, &["--seed", "2"])["duplicates"], trees[0].0["duplicates"]);
}

/// Test names and contents against a fixed checksum. If it changes, data sets of earlier versions cannot be compared
/// with new ones.
#[test]
fn the_tree_is_the_one_that_it_always_was() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("set");
    let manifest = populate(&path, &[]);
    let mut sum = 0u64;
    for (name, (_, contents)) in snapshot(&path) {
        for byte in name.to_str().unwrap().bytes().chain(contents) {
            sum = sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte);
        }
    }
    assert_eq!((manifest["apparent_bytes"].as_u64().unwrap(), sum), (BYTES, SUM));
}

const BYTES: u64 = 13_357_891;
const SUM: u64 = 14_589_403_634_992_111_188;

#[test]
fn every_answer_is_that_of_the_manifest() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("set");
    let manifest = populate(&path, &["--threads", "2"]);
    let root = path.to_str().unwrap();
    let answer = |arguments: &[&str]| succeed(&[arguments, &["--threads", "2"]].concat())["answer"].clone();
    let analysis = answer(&["analyze", root]);
    for key in ["files", "directories", "apparent_bytes"] {
        assert_eq!(analysis[key], manifest[key], "{key}");
    }
    assert_eq!(answer(&["classify", root])["by_content"], manifest["by_content"]);
    assert_eq!(answer(&["classify", root])["agreed"], manifest["files"]);
    let duplicates = answer(&["duplicates", root]);
    for (key, expected) in manifest["duplicates"].as_object().unwrap() {
        assert_eq!(&duplicates[key], expected, "{key}");
    }
    for pattern in manifest["patterns"].as_array().unwrap() {
        let found = answer(&["search", root, "-p", pattern["text"].as_str().unwrap()]);
        assert!(pattern["lines_matched"].as_u64().unwrap() > 10);
        for key in ["files_matched", "lines_matched"] {
            assert_eq!(found[key], pattern[key]);
        }
    }
    assert_eq!(answer(&["sync-read", root])["bytes"], manifest["apparent_bytes"]);
}

#[test]
fn a_spec_file_is_read_and_its_mistakes_are_named() {
    let directory = tempdir().unwrap();
    let (spec, set) = (directory.path().join("spec.json"), directory.path().join("set"));
    let classes = r#"{"classes": [{"name": "a", "files": 5, "mean_bytes": 1000}], "duplicates": 0}"#;
    fs::write(&spec, classes).unwrap();
    let arguments = ["populate", set.to_str().unwrap(), "--spec", spec.to_str().unwrap()];
    let found = succeed(&arguments);
    assert_eq!((&found["answer"]["files"], &found["answer"]["duplicates"]["sets"]), (&5.into(), &0.into()));
    let (found, _) = run(&arguments);
    assert_eq!(found["error"]["kind"], "invalid", "it is not empty any more");
    fs::write(&spec, r#"{"sede": 3}"#).unwrap();
    let (found, status) = run(&arguments);
    assert_eq!(status, Some(1));
    assert!(found["error"]["message"].as_str().unwrap().contains("sede"), "{found}");
}
