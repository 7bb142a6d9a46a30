//! Other file systems below a tree.

use std::process::Output;

use tempfile::tempdir;

use crate::common::{document, with_own_mounts};

pub(crate) fn delete_does_not_cross_into_another_file_system() {
    let directory = tempdir().unwrap();
    let script = r#"mkdir "$DIR/a" "$DIR/a/mounted" "$DIR/b"; mount -t tmpfs none "$DIR/a/mounted"
        : > "$DIR/a/mounted/kept"; : > "$DIR/a/gone"; : > "$DIR/b/gone"
        "$ENGINE" delete "$DIR" --keep-root --threads 2 --json; ls "$DIR/a/mounted" | grep -q kept"#;
    let output = with_own_mounts(directory.path(), script);
    let (found, status) = document(&output);
    assert_eq!((status, &found["answer"]["files"]), (Some(0), &2.into()));
    assert_eq!(found["warnings"][0]["kind"], "files_left_out");
}

pub(crate) fn a_top_that_stays_is_not_counted_as_deleted() {
    let directory = tempdir().unwrap();
    let script = r#"mkdir -p "$DIR/top/gone" "$DIR/top/mounted"; mount -t tmpfs none "$DIR/top/mounted"
        "$ENGINE" delete "$DIR/top" --json; [ -d "$DIR/top/mounted" ]"#;
    let (found, status) = document(&with_own_mounts(directory.path(), script));
    assert_eq!((status, &found["answer"]["directories"]), (Some(0), &1.into()), "{found:#}");
    assert_eq!(found["answer"]["troubles"]["failed"], 1, "the top: {found:#}");
    assert_eq!(found["warnings"][0]["kind"], "files_left_out");
}

pub(crate) fn mounts_are_left_out_and_no_failure() {
    let directory = tempdir().unwrap();
    let script = r#"mkdir "$DIR/a" "$DIR/a/mounted" "$DIR/a/bound"; : > "$DIR/a/file"
        mount -t tmpfs none "$DIR/a/mounted"; : > "$DIR/a/mounted/other"; mount --bind "$DIR/a" "$DIR/a/bound"
        "$ENGINE" analyze "$DIR" -x --json"#;
    assert_left_out(&with_own_mounts(directory.path(), script), 1, 2);
}

pub(crate) fn subvolumes_are_left_out_and_no_failure() {
    let directory = tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=200m none "$DIR"; cd "$DIR"; mkdir at
        truncate -s 128m image; mkfs.btrfs -q image > /dev/null; mount -o loop image at
        mkdir at/tree at/tree/a; : > at/tree/a/file
        btrfs -q subvolume create at/tree/a/volume; : > at/tree/a/volume/other
        said=$("$ENGINE" delete at/tree/a/volume --json 2>/dev/null) && exit 3
        case $said in *'"kind": "invalid"'*) ;; *) exit 4 ;; esac
        [ -e at/tree/a/volume/other ]
        "$ENGINE" analyze at/tree -x --json
        "$ENGINE" delete at/tree > /dev/null; [ -e at/tree/a/volume/other ]; [ ! -e at/tree/a/file ]"#;
    assert_left_out(&with_own_mounts(directory.path(), script), 1, 1);
}

fn assert_left_out(output: &Output, files: u64, directories: u64) {
    let (found, status) = document(output);
    assert_eq!(status, Some(0), "{found:#} {}", String::from_utf8_lossy(&output.stderr));
    let answer = &found["answer"];
    assert_eq!((&answer["files"], &found["operations"][0]["errors"]), (&files.into(), &0.into()));
    let none =
        serde_json::json!({"vanished": 0, "denied": 0, "failed": 0, "other_file_systems": directories});
    assert_eq!(answer["troubles"], none);
    assert_eq!(found["warnings"], serde_json::json!([]));
}

pub(crate) fn a_method_that_cannot_work_is_an_error() {
    let directory = tempdir().unwrap();
    // tmpfs has no reflinks, and the kernel does not support copy_file_range(2) from tmpfs to ramfs.
    for (method, to) in [("reflink", "at/copy"), ("copy-file-range", "other/copy")] {
        let script = format!(
            r#"mkdir -p "$DIR/at" "$DIR/other"; cd "$DIR"; mount -t tmpfs none at; mount -t ramfs none other
            mkdir at/set; echo x > at/set/a; echo y > at/set/b
            "$ENGINE" sync-write at/set {to} --method {method} --json || status=$?
            [ -z "$(ls {to})" ]; exit $status"#
        );
        let (found, status) = document(&with_own_mounts(directory.path(), &script));
        assert_eq!((status, &found["error"]["kind"]), (Some(1), &"invalid".into()), "{method}: {found:#}");
        assert!(found["error"]["message"].as_str().unwrap().contains("read-write"), "{found:#}");
    }
}
