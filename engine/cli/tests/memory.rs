//! Memory that runs out at any point of any command is an error document, never an abort.

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
/// More than any of these commands needs.
const ENOUGH: usize = 256 << 20;

/// Names long enough for lists of a megabyte, some of them of the same file.
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

/// Runs the engine with so much address space.
fn within(bytes: u64, arguments: &[&str]) -> Output {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    let mut command = engine();
    // SAFETY: between fork and exec only a system call is made.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command.args(arguments).arg("--json").env_remove("RUST_BACKTRACE").output().unwrap()
}

/// How much the program needs to start with; its arguments are read before a failure can be said as asked for.
fn start() -> usize {
    let starts = |bytes: &usize| within(*bytes as u64, &["--version"]).status.success();
    (STEP..ENOUGH).step_by(STEP).find(starts).unwrap() + STEP
}

/// Runs a command with ever more memory until it does its work; returns how often there was too little.
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
