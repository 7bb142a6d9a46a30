//! Free space: work that cannot fit is refused before anything is written.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{document, with_own_mounts};

/// Run a command on a tmpfs of 1 MiB. Return the document, and a list of what the command left there.
fn refused_on_tmpfs(command: &str) -> (Value, String) {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("mount")).unwrap();
    fs::create_dir(directory.path().join("source")).unwrap();
    fs::write(directory.path().join("source/long"), vec![b'x'; 2 << 20]).unwrap();
    fs::write(directory.path().join("workload.f"), WORKLOAD).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m,nr_inodes=500 tmpfs $DIR/mount; cd $DIR/mount; mkdir new
        $ENGINE {command} --json || true; find . -mindepth 1 ! -path ./new -printf '%s %p\\n' >&2"
    );
    let output = with_own_mounts(directory.path(), &script);
    let left =
        String::from_utf8_lossy(&output.stderr).lines().filter(|l| l.contains("./")).collect::<String>();
    (document(&output).0, left)
}

const WORKLOAD: &str = "define fileset name=a,path=/tmp,entries=10,size=90k,dirwidth=5,prealloc=100
    define fileset name=b,path=/tmp,entries=10,size=90k,dirwidth=5,prealloc=100
    define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }
    run 1
";

pub(crate) fn known_sizes_are_compared_with_what_is_free() {
    for command in [
        "populate $DIR/mount/new --class many:40:64k:fixed",
        "small-files $DIR/mount --files 300 --size 8k",
        "small-files $DIR/mount --files 1000 --size 0",
        "meta $DIR/mount --files 1000",
        "wml $DIR/workload.f --dir $DIR/mount",
        "sync-write $DIR/source $DIR/mount/new",
    ] {
        let (found, left) = refused_on_tmpfs(command);
        assert_eq!(found["error"]["kind"], "no_space", "{command}: {found:#}");
        assert_eq!(left, "", "{command}");
    }
}

/// Test that a workload ends when `MemAvailable` becomes too small. The test mounts its own file over `/proc/meminfo`.
pub(crate) fn growing_files_end_a_workload_before_memory_is_gone() {
    let directory = tempdir().unwrap();
    let workload = "define fileset name=a,path=/tmp,entries=1,size=0,dirwidth=5
        define process name=p { thread name=t,memsize=4k { flowop createfile name=c,filesetname=a,fd=1
        flowop delay name=d,value=1000 } }
        run 1000";
    let script = format!(
        r#"mount -t tmpfs -o size=16m tmpfs $DIR; cd $DIR; mkdir at; cp /proc/meminfo memory
        mount --bind memory /proc/meminfo
        $ENGINE wml --script '{workload}' --dir at --json > said & engine=$!
        until [ -n "$(find at -type f)" ]; do kill -0 $engine; sleep 0.02; done
        echo 'MemAvailable: 1024 kB' > memory
        wait $engine || status=$?; cat said; exit $status"#
    );
    let (found, status) = document(&with_own_mounts(directory.path(), &script));
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"no_space".into()), "{found:#}");
    assert!(found["error"]["message"].as_str().unwrap().contains("less than an eighth"), "{found:#}");
}
