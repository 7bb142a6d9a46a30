//! Limits of the input: pipes, devices and directories are refused as input files, and files and numbers are bounded.

use std::process::{Command, Output, Stdio};

use tempfile::tempdir;

fn engine(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fslab-engine"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the engine starts")
}

fn refused(arguments: &[&str], why: &str) {
    let output = engine(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains(why), "{arguments:?}: {error}");
}

#[test]
fn what_never_ends_is_not_read() {
    let home = tempdir().unwrap();
    let pipe = home.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let target = home.path().join("target");
    let target = target.to_str().unwrap();
    for endless in ["/dev/zero", pipe.to_str().unwrap(), home.path().to_str().unwrap()] {
        refused(&["populate", target, "--spec", endless], "is not a regular file");
        refused(&["wml", "--check", endless], "is not a regular file");
    }
    let long = home.path().join("long");
    std::fs::File::create(&long).unwrap().set_len((16 << 20) + 1).unwrap();
    refused(&["populate", target, "--spec", long.to_str().unwrap()], "is larger than 16 MiB");
    assert!(!std::path::Path::new(target).exists());
}

#[test]
fn as_many_threads_as_no_machine_has_are_refused() {
    for threads in ["9223372036854775808", "18446744073709551616", "4194305"] {
        refused(&["duplicates", "/nowhere", "--threads", threads], threads);
    }
}
