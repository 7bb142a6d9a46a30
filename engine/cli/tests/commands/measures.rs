//! Relations between measured values that hold under any load of the machine.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::succeed;
use crate::common::wml::{count, files, flowop, script};
use serde_json::Value;
use tempfile::tempdir;

fn seconds(operation: &Value, key: &str) -> f64 {
    operation[key].as_f64().unwrap()
}

/// Test that work after the threads have finished (hard links, removal of the top directory) is in `seconds`, but not
/// in `sync_seconds`.
#[test]
fn without_a_sync_there_is_no_time_of_one() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (tree, copy) = (path("tree"), path("copy"));
    fs::create_dir(&tree).unwrap();
    fs::write(directory.path().join("tree/a"), "a").unwrap();
    fs::hard_link(directory.path().join("tree/a"), directory.path().join("tree/b")).unwrap();
    symlink("a", directory.path().join("tree/c")).unwrap();
    let copied = succeed(&["sync-write", &tree, &copy, "--sync", "none"]);
    let deleted = succeed(&["delete", &copy, "--no-syncfs"]);
    for document in [&copied, &deleted] {
        let operation = &document["operations"][0];
        assert_eq!(operation["sync_seconds"], Value::Null, "{document:#}");
        assert!(seconds(operation, "seconds") >= seconds(operation, "last_finished_seconds"));
    }
    let synced = succeed(&["delete", &tree]);
    let operation = &synced["operations"][0];
    let parts = seconds(operation, "last_finished_seconds") + seconds(operation, "sync_seconds");
    assert!(parts <= seconds(operation, "seconds") + 1e-9, "{synced:#}");
}

/// Test that the total of a duplicate search includes its phases and the time between them.
#[test]
fn the_whole_is_no_less_than_its_parts() {
    let directory = tempdir().unwrap();
    for (name, contents) in [("a", b'x'), ("b", b'x'), ("c", b'y'), ("d", b'y')] {
        fs::write(directory.path().join(name), vec![contents; 100_000]).unwrap();
    }
    let alone = succeed(&["duplicates", directory.path().to_str().unwrap(), "--threads", "1"]);
    for operation in alone["operations"].as_array().unwrap() {
        let seconds = |key: &str| operation[key].as_f64().unwrap();
        let cpu = seconds("cpu_user_seconds") + seconds("cpu_system_seconds");
        assert!(cpu <= seconds("seconds") + 0.0005, "one thread is counted once: {operation:#}");
    }
    let found = succeed(&["duplicates", directory.path().to_str().unwrap(), "--threads", "2"]);
    let operations = found["operations"].as_array().unwrap();
    let (whole, parts) = operations.split_last().unwrap();
    let sum: f64 = parts.iter().map(|part| seconds(part, "seconds")).sum();
    assert!(seconds(whole, "seconds") >= sum, "{found:#}");
    for part in parts.iter().skip(1) {
        assert_eq!(part["syscalls"]["open"]["count"], part["syscalls"]["close"]["count"], "{part:#}");
    }
}

/// Test that an operation cut short by the end of the run is not counted, but its bytes are.
#[test]
fn an_unfinished_operation_counts_its_bytes() {
    let directory = tempdir().unwrap();
    let text = "define file name=long,path=/tmp,size=1g\n\
        define process name=p { thread name=t {\n\
          flowop createfile name=create,filesetname=long,fd=1\n\
          flowop writewholefile name=write,fd=1,iosize=16 } }\nrun 1\n";
    // On a busy machine, the thread may not start within the shortest run.
    let run = |seconds| {
        let found = script(directory.path(), text, &["--run", seconds]);
        let length = files(directory.path()).first().map_or(0, |file| file.1);
        (length > 0).then_some((found, length))
    };
    let (found, length) = ["0.05", "0.5", "5"].into_iter().find_map(run).unwrap();
    assert_eq!((count(&found, "write"), &flowop(&found, "write")["bytes"]), (0, &length.into()));
    assert_eq!(found["operations"][0]["bytes"], length);
}

#[test]
fn each_file_is_renamed_once_and_has_its_name_back() {
    let directory = tempdir().unwrap();
    let steps = ["--files", "20", "--dirs", "2", "--operations", "create,rename,stat,unlink"];
    let found = succeed(&[&["meta", directory.path().to_str().unwrap()], &steps[..]].concat());
    let counts: Vec<&Value> =
        found["operations"].as_array().unwrap().iter().map(|operation| &operation["count"]).collect();
    assert_eq!(counts, [20, 20, 20, 20]);
}
