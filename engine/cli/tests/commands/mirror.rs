//! `sync-write`: hard links in directories that become read-only, and which files and directories are synced.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::common::{document, shell, succeed};
use tempfile::tempdir;

#[test]
fn further_names_are_made_in_directories_that_become_read_only() {
    let directory = tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The script runs as nobody, because root may write to a read-only directory.
    let script = r#"cd "$DIR"; $AS_NOBODY sh -ec '
            umask 022; mkdir -p set/closed/inner set/deep/closed
            echo x > set/name; for at in set/closed/inner set/deep/closed set/closed; do ln set/name $at/name; done
            find set -type d -exec touch -d 2001-02-03 {} +
            chmod 555 set/closed/inner set/deep/closed set/closed set
            "$ENGINE" sync-write set copy --threads 3 --json'"#;
    let output = shell(directory.path(), script);
    let modes = |top: &str| {
        ["", "closed", "closed/inner", "deep", "deep/closed"].map(|path| {
            let about = fs::metadata(directory.path().join(top).join(path)).unwrap();
            (about.mode(), about.mtime())
        })
    };
    let same = modes("set") == modes("copy");
    let links = fs::metadata(directory.path().join("copy/name")).unwrap().nlink();
    shell(directory.path(), r#"chmod -R u+w "$DIR/set" "$DIR/copy""#);
    let (found, status) = document(&output);
    assert_eq!((status, &found["answer"]["hard_links"]), (Some(0), &3.into()), "{found:#}");
    assert_eq!((links, same), (4, true));
}

#[test]
fn what_is_synced_is_what_was_promised() {
    let directory = tempdir().unwrap();
    let set = directory.path().join("set");
    fs::create_dir_all(set.join("a/b")).unwrap();
    for name in ["one", "a/two", "a/b/three"] {
        fs::write(set.join(name), name).unwrap();
    }
    let syncs = |how: &str| {
        let copy = directory.path().join(how);
        let arguments = ["sync-write", set.to_str().unwrap(), copy.to_str().unwrap(), "--sync", how];
        let found = succeed(&arguments);
        found["operations"][0]["syscalls"]["fsync"]["count"].as_u64().unwrap_or(0)
    };
    // Three files and three directories, including the top one. The parent of the copy is synced after the walk, and
    // not counted.
    assert_eq!(["none", "file", "directory", "syncfs"].map(syncs), [0, 3, 6, 0]);
}
