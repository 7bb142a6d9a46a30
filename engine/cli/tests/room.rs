//! What is known not to fit is refused before anything is written; what no machine can hold is an error.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{document, run, succeed, with_own_mounts};
use serde_json::Value;
use tempfile::tempdir;

/// Runs a command on a tmpfs of 1 MiB; nothing may be in it afterwards but what was.
fn refused_on_tmpfs(command: &str) -> Option<(Value, String)> {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("mount")).unwrap();
    fs::create_dir(directory.path().join("source")).unwrap();
    fs::write(directory.path().join("source/long"), vec![b'x'; 2 << 20]).unwrap();
    fs::write(directory.path().join("workload.f"), WORKLOAD).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m,nr_inodes=500 tmpfs $DIR/mount; cd $DIR/mount
        $ENGINE {command} --json || true; find . -mindepth 1 -printf '%s %p\\n' >&2"
    );
    let output: Output = with_own_mounts(directory.path(), &script)?;
    let left =
        String::from_utf8_lossy(&output.stderr).lines().filter(|l| l.contains("./")).collect::<String>();
    Some((document(&output).0, left))
}

const WORKLOAD: &str = "define fileset name=a,path=/tmp,entries=10,size=90k,dirwidth=5,prealloc=100
    define fileset name=b,path=/tmp,entries=10,size=90k,dirwidth=5,prealloc=100
    define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }
    run 1
";

#[test]
fn known_sizes_are_compared_with_what_is_free() {
    for command in [
        "populate $DIR/mount --class many:40:64k:fixed",
        "small-files $DIR/mount --files 300 --size 8k",
        "small-files $DIR/mount --files 1000 --size 0",
        "meta $DIR/mount --files 1000",
        "wml $DIR/workload.f --dir $DIR/mount",
        "sync-write $DIR/source $DIR/mount",
    ] {
        let Some((found, left)) = refused_on_tmpfs(command) else {
            eprintln!("not tested: no right to mount");
            return;
        };
        assert_eq!(found["error"]["kind"], "no_space", "{command}: {found:#}");
        assert_eq!(left, "", "{command}");
    }
}

/// Each of these asks for more memory than any machine has; none may end the process by a signal.
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

/// What fits is made, to the last inode.
#[test]
fn what_fits_is_made() {
    let directory = tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    let found =
        succeed(&["small-files", root, "--files", "10", "--size", "1m", "--operations", "create,delete"]);
    assert_eq!(found["operations"][0]["bytes"], 10 << 20);
}
