//! Memory and free space: buffers that fit in no machine are an error, and files that fit are created.

use std::fs;
use std::path::Path;

use crate::common::{run, succeed};
use tempfile::tempdir;

/// Test commands that need more memory than any machine has: they fail with an error, not by a signal.
#[test]
fn memory_that_is_not_there_is_an_error() {
    let directory = tempdir().unwrap();
    let (tree, copy) = (directory.path().join("tree"), directory.path().join("copy"));
    fs::create_dir(&tree).unwrap();
    let (tree, copy) = (tree.to_str().unwrap(), copy.to_str().unwrap());
    let buffer = ["--buffer", "900t"];
    for arguments in [
        &[&["sync-read", tree], &buffer[..]].concat()[..],
        &[&["sync-write", tree, copy], &buffer[..]].concat()[..],
        &[&["search", tree, "--pattern", "needle"], &buffer[..]].concat()[..],
        &["sync-read", tree, "--buffer", "1g", "--threads", "900000"],
    ] {
        let (found, status) = run(arguments);
        assert_eq!(
            (&found["error"]["kind"], status),
            (&"no_memory".into(), Some(1)),
            "{arguments:?}: {found:#}"
        );
    }
    assert_eq!(fs::read_dir(Path::new(tree)).unwrap().count(), 0);
}

#[test]
fn what_fits_is_made() {
    let directory = tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    let found =
        succeed(&["small-files", root, "--files", "10", "--size", "64k", "--operations", "create,delete"]);
    assert_eq!(found["operations"][0]["bytes"], 10 << 16);
}
