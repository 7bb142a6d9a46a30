//! Failures during a run: races, limits of the process, missing permissions, signals.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{self, document, engine, run, shell, snapshot, wide_tree};
use tempfile::tempdir;

/// Replace directories of the tree by links to `outside` and restore them, until `over` is set. Count the replacements.
fn attack(tree: &Path, outside: &Path, over: &AtomicBool, swaps: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        for index in 0..200 {
            let (victim, aside) = (tree.join(format!("d{index}")), tree.join(format!("aside{index}")));
            if fs::rename(&victim, &aside).is_ok() {
                swaps.fetch_add(u64::from(symlink(outside, &victim).is_ok()), Ordering::Relaxed);
                let _ = fs::remove_file(&victim);
                let _ = fs::rename(&aside, &victim);
            }
        }
    }
}

/// Wait for the first replacement: the attack has begun. Panic if none succeeds.
fn attacked(swaps: &AtomicU64) {
    let start = Instant::now();
    while swaps.load(Ordering::Relaxed) == 0 {
        assert!(start.elapsed() < Duration::from_secs(300), "no directory could be replaced");
        thread::yield_now();
    }
}

#[test]
fn delete_never_leaves_the_tree_while_directories_are_swapped_for_links() {
    for round in 0..6 {
        let directory = tempdir().unwrap();
        let (tree, outside) = (directory.path().join("tree"), directory.path().join("outside"));
        wide_tree(&tree, 200, 20);
        wide_tree(&outside.join("inner"), 3, 20);
        fs::create_dir_all(outside.join("inner")).unwrap();
        fs::write(outside.join("precious"), "x").unwrap();
        let before = snapshot(&outside);
        let (over, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| attack(&tree, &outside, &over, &swaps));
            }
            attacked(&swaps);
            let threads = if round % 2 == 0 { "1" } else { "4" };
            run(&["delete", tree.to_str().unwrap(), "--keep-root", "--threads", threads]);
            over.store(true, Ordering::Relaxed);
        });
        assert!(snapshot(&outside) == before, "something outside of the tree was touched");
    }
}

#[test]
fn nothing_outside_is_read_while_directories_are_swapped_for_links() {
    let directory = tempdir().unwrap();
    let (tree, outside) = (directory.path().join("tree"), directory.path().join("outside"));
    wide_tree(&tree, 200, 5);
    fs::create_dir_all(outside.join("inner")).unwrap();
    fs::write(outside.join("inner/secret"), "needle").unwrap();
    let (over, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| attack(&tree, &outside, &over, &swaps));
        attacked(&swaps);
        let search = || run(&["search", tree.to_str().unwrap(), "-p", "needle", "--threads", "2"]);
        let found: Vec<_> = (0..20).map(|_| search().0["answer"]["files_matched"].clone()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(found.iter().all(|count| *count == 0), "{found:?}");
    });
}

#[test]
fn files_that_vanish_are_counted_and_not_fatal() {
    let directory = tempdir().unwrap();
    let tree = directory.path().join("tree");
    for command in [&["analyze"][..], &["sync-read"], &["duplicates"], &["classify"], &["search", "-p", "x"]]
    {
        wide_tree(&tree, 100, 20);
        thread::scope(|scope| {
            let removing = scope.spawn(|| fs::remove_dir_all(&tree));
            let arguments = [command, &[tree.to_str().unwrap(), "--threads", "2"]].concat();
            let (found, status) = run(&arguments);
            // The whole tree may be gone before the command starts.
            assert!(status == Some(0) || found["error"]["kind"] == "not_found", "{found:#}");
            removing.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_chain_longer_than_any_path_is_walked_and_deleted_with_few_descriptors() {
    let directory = tempdir().unwrap();
    let script = r#"ulimit -n 40; cd "$DIR"; i=0
        while [ $i -lt 200 ]; do mkdir directory-with-a-long-name; cd -P directory-with-a-long-name; echo x > file; i=$((i+1)); done
        cd /; for order in depth breadth; do
          "$ENGINE" analyze "$DIR" --threads 3 --order $order --json | grep -q '"files": 200'
        done
        "$ENGINE" duplicates "$DIR" --json | grep -q '"sets": 1,'
        "$ENGINE" sync-write "$DIR" "$DIR.copy" --threads 2 --json | grep -q '"files": 200'
        "$ENGINE" delete "$DIR.copy" --json | grep -q '"files": 200'

        "$ENGINE" delete "$DIR" --keep-root --threads 3 --json"#;
    let output = shell(directory.path(), script);
    let (found, status) = document(&output);
    assert_eq!(status, Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&found["answer"]["files"], &found["answer"]["directories"]), (&200.into(), &200.into()));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn breadth_first_does_with_few_descriptors() {
    let directory = tempdir().unwrap();
    wide_tree(directory.path(), 300, 1);
    let script = r#"ulimit -n 40
        "$ENGINE" sync-write "$DIR" "$DIR.copy" --order breadth --threads 2 --json"#;
    let output = shell(directory.path(), script);
    let (found, status) = document(&output);
    let copy = directory.path().with_extension("copy");
    let _ = fs::remove_dir_all(copy);
    assert_eq!((status, &found["answer"]["files"]), (Some(0), &300.into()), "{found:#}");
}

#[test]
fn a_file_that_may_not_be_so_large_is_an_error() {
    let directory = tempdir().unwrap();
    let script = r#"ulimit -f 64; "$ENGINE" small-files "$DIR/s" --files 1 --size 1m --json"#;
    fs::create_dir(directory.path().join("s")).unwrap();
    let (found, status) = document(&shell(directory.path(), script));
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"io".into()), "{found:#}");
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let directory = endless();
    let mut command = engine();
    // SAFETY: signal(2) is async-signal-safe, and the closure accesses no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut child = search(&mut command, directory.path());
    assert!(common::signals(&child, "SigIgn:") >> (libc::SIGHUP - 1) & 1 == 1, "it does not ignore SIGHUP");
    common::send(&child, libc::SIGHUP);
    common::send(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn too_few_descriptors_are_named() {
    let directory = tempdir().unwrap();
    let script = r#"ulimit -n 5; "$ENGINE" small-files "$DIR" --files 10 --threads 4 --dirs 4 --json"#;
    let output = shell(directory.path(), script);
    let (found, status) = document(&output);
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"too_many_files".into()));
}

#[test]
fn many_threads_do_with_the_descriptors_of_a_shell() {
    let directory = tempdir().unwrap();
    let script = r#"ulimit -Sn 20; "$ENGINE" small-files "$DIR" --files 64 --threads 32 --dirs 32 --json"#;
    let (found, status) = document(&shell(directory.path(), script));
    assert_eq!(status, Some(0), "{found:#}");
}

#[test]
fn what_may_not_be_read_is_counted() {
    let directory = tempdir().unwrap();
    wide_tree(directory.path(), 2, 3);
    let permit = |path: &str, mode: u32| {
        fs::set_permissions(directory.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    permit("", 0o755);
    permit("d0", 0);
    permit("d1/inner/f0", 0);
    // Root may read everything, so the command runs as nobody.
    let (found, _) = document(&shell(directory.path(), r#"$AS_NOBODY "$ENGINE" sync-read "$DIR" --json"#));
    permit("d0", 0o700);
    assert_eq!((&found["answer"]["files"], &found["answer"]["troubles"]["denied"]), (&2.into(), &2.into()));
}

#[test]
fn senseless_deletes_and_mirrors_are_refused() {
    for arguments in [&["delete", "/"][..], &["delete", "."], &["delete", "/..", "--keep-root"]] {
        let (found, status) = run(arguments);
        assert_eq!((status, &found["error"]["kind"]), (Some(1), &"invalid".into()), "{arguments:?}");
    }
    let directory = tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    fs::create_dir(directory.path().join("empty")).unwrap();
    let within = directory.path().join("empty");
    let (found, _) = run(&["sync-write", root, within.to_str().unwrap()]);
    assert_eq!(found["error"]["kind"], "invalid");
    let (found, _) = run(&["sync-write", within.to_str().unwrap(), root]);
    assert_eq!(found["error"]["kind"], "invalid");
}

/// Return a tree of two holes of 8 TiB. They occupy no space, but take so long to read that no command can finish.
fn endless() -> tempfile::TempDir {
    let directory = tempdir().unwrap();
    for file in ["a", "b"] {
        let hole = fs::File::create(directory.path().join(file)).unwrap();
        hole.set_len(1 << 43).unwrap();
    }
    directory
}

/// Start a search in a tree and wait until it handles signals.
fn search(command: &mut Command, tree: &Path) -> Child {
    let mut child = command
        .args(["search", tree.to_str().unwrap(), "-p", "needle", "--threads", "2", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    common::listening(&mut child, libc::SIGINT);
    child
}

#[test]
fn a_walk_ends_at_a_signal() {
    let directory = endless();
    let mut child = search(&mut engine(), directory.path());
    common::send(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn what_a_killed_run_leaves_can_be_deleted() {
    let directory = tempdir().unwrap();
    let work = directory.path().join("fslab-small-files");
    let mut child = engine()
        .args(["small-files", directory.path().to_str().unwrap(), "--files", "500000", "--dirs", "50"])
        .args(["--size", "1", "--threads", "2"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while fs::read_dir(work.join("d0000000000")).map_or(0, Iterator::count) < 100 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it made 100 files");
        thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (found, status) = run(&["delete", work.to_str().unwrap(), "--threads", "2"]);
    assert_eq!((status, &found["answer"]["directories"]), (Some(0), &51.into()));
    assert!(found["answer"]["files"].as_u64().unwrap() >= 100);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
