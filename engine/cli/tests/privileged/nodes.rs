//! Devices, sockets and pipes in a tree are never opened, because a read of one may never end; links of others are not followed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
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

/// Its owner could have made links of its files, which `chmod` follows.
pub(crate) fn a_work_directory_of_another_user_is_refused() {
    let directory = tempdir().unwrap();
    let place = directory.path();
    let made = shell(
        place,
        "cd $DIR; mkdir -p fslab-meta/d0000000000; touch secret; chmod 600 secret; \
         ln -s ../../secret fslab-meta/d0000000000/f0000000000; chown -hR 65534 fslab-meta",
    );
    assert!(made.status.success(), "{made:?}");
    let output = shell(place, "timeout 60 $ENGINE meta $DIR --files 1 --operations chmod");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("belongs to another user"), "{output:?}");
    let mode = fs::metadata(place.join("secret")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Its owner could have made hard links of its files, which are then filled.
pub(crate) fn a_workload_uses_no_files_of_another_user() {
    let directory = tempdir().unwrap();
    let place = directory.path();
    let workload =
        "--script 'define fileset name=f,path=p,entries=1,size=4k,prealloc,reuse\ncreate files' --dir $DIR";
    let made = shell(
        place,
        "cd $DIR; mkdir -p fslab-wml/p/f; echo kept > secret; ln secret fslab-wml/p/f/00000001; \
         chown -h 65534 fslab-wml",
    );
    assert!(made.status.success(), "{made:?}");
    for more in ["--create-only", "--reuse"] {
        let output = shell(place, &format!("timeout 60 $ENGINE wml {workload} {more}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("belongs to another user"), "{output:?}");
        assert!(place.join("fslab-wml/p/f/00000001").exists());
        assert_eq!(fs::read_to_string(place.join("secret")).unwrap(), "kept\n");
    }
}

/// In a directory of others, it could lead to any file.
pub(crate) fn a_manifest_is_written_through_no_link() {
    let directory = tempdir().unwrap();
    let place = directory.path();
    let populate = |tree: &str, manifest: &str| {
        let script =
            format!("timeout 60 $ENGINE populate $DIR/{tree} --class a:1:1k --manifest $DIR/{manifest}");
        shell(place, &script).status.success()
    };
    fs::write(place.join("secret"), "kept").unwrap();
    symlink("secret", place.join("link")).unwrap();
    fs::hard_link(place.join("secret"), place.join("hard")).unwrap();
    assert!(!populate("one", "link"));
    assert!(populate("two", "hard") && populate("three", "new") && populate("four", "new"));
    assert_eq!(fs::read_to_string(place.join("secret")).unwrap(), "kept");
    let manifests = ["hard", "new"].map(|name| fs::read(place.join(name)).unwrap());
    assert_eq!(manifests[0], manifests[1]);
    let left = fs::read_dir(place).unwrap().count();
    assert_eq!(left, 8, "secret, link, hard, new and four trees: nothing unfinished");
}
