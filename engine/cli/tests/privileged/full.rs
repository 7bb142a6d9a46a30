//! Runs that fill the file system.

use tempfile::tempdir;

use crate::common::{document, with_own_mounts};

pub(crate) fn a_full_file_system_ends_a_mirror_and_a_data_set() {
    for command in ["sync-write /usr/bin \"$DIR/copy\"", "populate \"$DIR/set\" --scale 0.001"] {
        let directory = tempdir().unwrap();
        let script =
            format!(r#"mount -t tmpfs -o size=2m none "$DIR"; "$ENGINE" {command} --threads 2 --json"#);
        let output = with_own_mounts(directory.path(), &script);
        let (found, status) = document(&output);
        assert_eq!((status, &found["error"]["kind"]), (Some(1), &"no_space".into()), "{command}");
    }
}

pub(crate) fn a_full_file_system_is_named_and_left_clean() {
    let directory = tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=1m none "$DIR"; "$ENGINE" small-files "$DIR" --json || true
        test -z "$(ls -A "$DIR")""#;
    let output = with_own_mounts(directory.path(), script);
    let (found, status) = document(&output);
    assert_eq!((status, &found["error"]["kind"]), (Some(0), &"no_space".into()));
}

pub(crate) fn a_full_file_system_is_named() {
    let directory = tempdir().unwrap();
    let program = r#"mount -t tmpfs -o size=2m none "$DIR"
        "$ENGINE" wml singlestreamwrite --dir "$DIR" --set filesize=64m --run 5 --json"#;
    let output = with_own_mounts(directory.path(), program);
    let (found, status) = document(&output);
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"no_space".into()), "{found:#}");
}
