//! The golden documents: each command writes documents of the shape that the Python code reads.
//!
//! If the environment variable `FSLAB_UPDATE_GOLDEN` is set, the golden documents are rewritten.

use std::fs;
use std::path::Path;

use crate::common::{assert_same_shape, golden, is_root, succeed};
use serde_json::Value;
use tempfile::tempdir;

fn check(name: &str, root: &Path, arguments: &[&str]) {
    let found = succeed(&[arguments, &["--threads", "2", "--interval", "1ms"]].concat());
    if std::env::var_os("FSLAB_UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&found).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden").join(name);
        fs::write(path, text.replace(root.to_str().unwrap(), "/mnt")).unwrap();
    }
    let mut expected = golden(name);
    if name == "populate.json" && !is_root() {
        // Only root can set owners. For other users, there is a warning and `by_owner` is null.
        expected["answer"]["by_owner"] = Value::Null;
        expected["warnings"] = serde_json::json!([{"kind": "owners_not_set", "message": ""}]);
    }
    assert_same_shape(&found, &expected, name);
    let names = |document: &Value| {
        let operations = document["operations"].as_array().unwrap();
        operations.iter().map(|operation| operation["name"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&found), names(&expected), "operations of {name}");
}

#[test]
fn every_command_writes_its_golden_document() {
    let directory = tempdir().unwrap();
    let root = directory.path();
    let (set, copy, work) = (root.join("set"), root.join("copy"), root.to_str().unwrap());
    let (set, copy) = (set.to_str().unwrap(), copy.to_str().unwrap());
    let classes = ["--class", "small:200:30k", "--duplicates", "0.2", "--owners", "2", "--fanout", "3"];
    check("populate.json", root, &[&["populate", set], &classes[..]].concat());
    check("analyze.json", root, &["analyze", set]);
    check("classify.json", root, &["classify", set]);
    check("duplicates.json", root, &["duplicates", set, "--list", "1"]);
    check("search.json", root, &["search", set, "--pattern", "fslab-needle", "--list", "1"]);
    check("sync-read.json", root, &["sync-read", set]);
    check("sync-write.json", root, &["sync-write", set, copy]);
    check("delete.json", root, &["delete", copy]);
    check("small-files.json", root, &["small-files", work, "--files", "300", "--dirs", "2", "--fsync"]);
    let sweep = ["--size", "256k", "--record", "4k,8k", "--flush", "--close"];
    check("iozone.json", root, &[&["iozone", work], &sweep[..]].concat());
    check("meta.json", root, &["meta", work, "--files", "300", "--dirs", "2"]);
}

/// Test the comparison itself: it must not accept a `null`, a missing key or a wrong element.
#[test]
fn a_document_of_another_shape_is_noticed() {
    let cases = [
        (r#"{"a": null}"#, r#"{"a": 1}"#),
        (r#"{"a": 1}"#, r#"{"a": null}"#),
        (r#"{"a": 1}"#, r#"{"b": 1}"#),
        (r#"[1, "x"]"#, "[1, 2]"),
        ("[]", "[1]"),
        ("[1]", "[]"),
        (r#"[{"a": 1}, {"a": null}]"#, r#"[{"a": 1}]"#),
        (r#"{"count": 1, "latency_ns": null}"#, r#"{"count": 1, "latency_ns": 2}"#),
    ];
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (found, expected) in cases {
        let compared = std::panic::catch_unwind(|| assert_same_shape(&parse(found), &parse(expected), "it"));
        assert!(compared.is_err(), "{found} is not like {expected}");
    }
    let never_done = r#"{"count": 0, "latency_ns": null}"#;
    assert_same_shape(&parse(never_done), &parse(r#"{"count": 1, "latency_ns": 2}"#), "it");
    assert_same_shape(&parse("[1, null, 2]"), &parse("[null, 3]"), "it");
}
