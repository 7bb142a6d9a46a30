//! Devices, sockets and pipes in a tree: they are never opened, because a read of one may never end.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{document, shell};

pub(crate) fn what_is_no_file_is_never_opened() {
    let directory = tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("real"), "needle\n").unwrap();
    let _socket = UnixListener::bind(tree.join("socket")).unwrap();
    symlink("/dev/zero", tree.join("link")).unwrap();
    let made =
        shell(&tree, "cd $DIR; mkfifo pipe; mknod zero c 1 5; mknod terminal c 5 0; mknod block b 7 255");
    assert!(made.status.success(), "{made:?}");
    let commands = ["search $DIR --pattern needle", "sync-read $DIR", "classify $DIR", "duplicates $DIR"];
    for command in commands {
        let output = shell(&tree, &format!("timeout 60 $ENGINE {command} --json"));
        let (found, status) = document(&output);
        assert_eq!((status, &found["answer"]["files"]), (Some(0), &1.into()), "{command}: {found:#}");
    }
    let (found, _) = document(&shell(&tree, "timeout 60 $ENGINE sync-write $DIR $DIR-copy --json"));
    let counts: Vec<&Value> =
        ["files", "symlinks", "left_out"].iter().map(|key| &found["answer"][key]).collect();
    assert_eq!(counts, [1, 1, 3], "devices are left out: {found:#}");
    let (found, _) = document(&shell(&tree, "timeout 60 $ENGINE delete $DIR-copy --json"));
    assert_eq!(found["answer"]["files"], 4, "the file, the link, the pipe and the socket: {found:#}");
    assert!(tree.join("zero").exists());
}
