//! The confirmation of `delete`: it is requested on a terminal only.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::engine;
use tempfile::{TempDir, tempdir};

const MANY: usize = 10_001;

fn tree(files: usize) -> TempDir {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("tree")).unwrap();
    for file in 0..files {
        fs::write(directory.path().join(format!("tree/{file}")), "").unwrap();
    }
    directory
}

fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let name = std::ptr::null_mut();
    let (settings, size) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the first two pointers are valid; the other arguments may be null.
    assert_eq!(unsafe { libc::openpty(&raw mut ours, &raw mut theirs, name, settings, size) }, 0);
    // SAFETY: `openpty` has just opened the descriptors, and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Run `delete` on a terminal whose input is `typed`.
fn delete_answering(tree: &Path, typed: &str, more: &[&str]) -> Output {
    let (ours, theirs) = terminal();
    File::from(ours.try_clone().unwrap()).write_all(typed.as_bytes()).unwrap();
    let mut command = engine();
    command.arg("delete").arg(tree).args(more).stdin(theirs).stdout(Stdio::null());
    command.output().unwrap()
}

#[test]
fn many_files_are_deleted_on_a_terminal_after_a_yes_only() {
    let directory = tree(MANY);
    let tree = directory.path().join("tree");
    for typed in ["n\n", "\n", "what\n", "\u{4}"] {
        let output = delete_answering(&tree, typed, &[]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("more than 10000 files") && said.contains("--yes"), "{said}");
        assert_eq!(fs::read_dir(&tree).unwrap().count(), MANY);
    }
    assert!(delete_answering(&tree, "y\n", &[]).status.success());
    assert!(!tree.exists());
}

#[test]
fn few_files_or_yes_or_no_terminal_are_not_asked_about() {
    let cases: [(usize, &[&str]); 2] = [(MANY - 1, &[]), (MANY, &["--yes"])];
    for (files, more) in cases {
        let directory = tree(files);
        let output = delete_answering(&directory.path().join("tree"), "", more);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
    let directory = tree(MANY);
    let output =
        engine().arg("delete").arg(directory.path().join("tree")).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
