//! A lack of memory at any point of a command leads to an error document, never to an abort.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;

use common::{document, engine};
use serde_json::Value;
use tempfile::tempdir;

const STEP: usize = 256 << 10;
/// Address space in bytes that is enough for each of these commands.
const ENOUGH: usize = 256 << 20;

/// Create files with names so long that lists of them take about a megabyte. Each file has a second, short name.
fn make(root: &Path) {
    for directory in 0..20 {
        let path = root.join(format!("{directory}-{}", "d".repeat(200)));
        fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            let name = path.join(format!("{file}-{}.{file}", "n".repeat(200)));
            fs::write(&name, "needle").unwrap();
            fs::hard_link(&name, path.join(format!("{file}"))).unwrap();
        }
    }
}

/// Run the engine with this limit of its address space (`RLIMIT_AS`), in bytes.
fn within(bytes: u64, arguments: &[&str]) -> Output {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    let mut command = engine();
    // SAFETY: the closure only makes a system call between fork and exec.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command.args(arguments).arg("--json").env_remove("RUST_BACKTRACE").output().unwrap()
}

/// Return an address space in bytes in which the program starts. With less, it fails before it has parsed its
/// arguments, and cannot know that a document is requested.
fn start() -> usize {
    let starts = |bytes: &usize| within(*bytes as u64, &["--version"]).status.success();
    (STEP..ENOUGH).step_by(STEP).find(starts).unwrap() + STEP
}

/// Run a command with increasing address space until it succeeds. Return how many runs failed for lack of memory.
fn refusals(start: usize, arguments: &[&str]) -> usize {
    for (refused, bytes) in (start..ENOUGH).step_by(STEP).enumerate() {
        let (found, status) = document(&within(bytes as u64, arguments));
        let kind = found.pointer("/error/kind").and_then(Value::as_str);
        match (status, kind) {
            (Some(0), None) => return refused,
            (Some(1), Some("no_memory")) => {}
            _ => panic!("{arguments:?} within {bytes} bytes: {status:?} {found:#}"),
        }
    }
    panic!("{arguments:?}: {ENOUGH} bytes are not enough")
}

#[test]
fn memory_that_runs_out_anywhere_is_an_error_document() {
    let directory = tempdir().unwrap();
    let tree = directory.path().join("tree");
    make(&tree);
    let (tree, start, list) = (tree.to_str().unwrap(), start(), "100000");
    for arguments in
        [&["duplicates", tree, "--list", list][..], &["search", tree, "--pattern", "needle", "--list", list]]
    {
        assert!(refusals(start, arguments) > 0, "{arguments:?}");
    }
}
