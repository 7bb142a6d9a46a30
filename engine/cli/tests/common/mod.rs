//! Helpers that run the binary and parse its output.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)] // each test file uses a part of this

pub mod wml;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use serde_json::Value;

/// Return a command that runs the engine. It resets SIGINT, SIGTERM and SIGHUP to their defaults, because they may be
/// ignored where the tests run in the background of a shell or under nohup(1).
pub fn engine() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fslab-engine"));
    // SAFETY: signal(2) is async-signal-safe, and the closure accesses no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

/// Run the engine with `--json`. Return the document and the exit status.
pub fn run(arguments: &[&str]) -> (Value, Option<i32>) {
    document(&engine().args(arguments).arg("--json").output().unwrap())
}

/// Run the engine with `--json`. Return the document; panic unless the exit status is 0.
pub fn succeed(arguments: &[&str]) -> Value {
    let (document, status) = run(arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {document:#}");
    document
}

/// Wait until a process has installed a handler for a signal: before that, the signal would kill it. Panic if it exits
/// first.
pub fn listening(child: &mut Child, signal: libc::c_int) {
    while signals(child, "SigCgt:") >> (signal - 1) & 1 == 0 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Return the signal mask ``name`` of a process, from `proc_pid_status(5)`; 0 if it has ended.
pub fn signals(child: &Child, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mask = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

/// Send a signal to a child that has not been waited for.
pub fn send(child: &Child, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: as the child has not been waited for, its id is still its own.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

pub fn document(output: &Output) -> (Value, Option<i32>) {
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (document, output.status.code())
}

pub fn wide_tree(root: &Path, directories: usize, files: usize) {
    for directory in 0..directories {
        let path = root.join(format!("d{directory}/inner"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..files {
            fs::write(path.join(format!("f{file}")), "x").unwrap();
        }
    }
}

/// Run a shell script. `$ENGINE` is the binary and `$DIR` the given directory. `$AS_NOBODY` is a command prefix that
/// drops the privileges of root; it is empty for other users.
pub fn shell(directory: &Path, script: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).env("ENGINE", env!("CARGO_BIN_EXE_fslab-engine")).env("DIR", directory);
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    shell.env("AS_NOBODY", if is_root() { nobody } else { "" }).output().unwrap()
}

/// Unmount the loop devices of other programs in the test's mount name space: a copy of a mount keeps its device busy,
/// and mkfs.btrfs fails on every device if the disk below one mount is dead. The mounts with the test directory and the
/// binary stay.
const WITHOUT_MOUNTS_OF_OTHERS: &str = r#"
    while read -r source target rest; do
        case $source in /dev/loop*) ;; *) continue ;; esac
        case $DIR/$ENGINE in "$target"/* | *"/$target"/*) continue ;; esac
        umount --lazy "$target" 2> /dev/null || :
    done < /proc/self/mounts
"#;

/// Run a shell script as root in its own mount name space, so that its mounts are removed when it exits. A user other
/// than root gets a user name space. `$ENGINE` is the binary and `$DIR` the given directory.
pub fn with_own_mounts(directory: &Path, script: &str) -> Output {
    let mut shell = unshare();
    shell.args(["sh", "-ec", &format!("{WITHOUT_MOUNTS_OF_OTHERS}\n{script}")]);
    shell.env("ENGINE", env!("CARGO_BIN_EXE_fslab-engine")).env("DIR", directory).output().unwrap()
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(if is_root() { &["--mount"][..] } else { &["--user", "--map-root-user", "--mount"] });
    command
}

pub fn is_root() -> bool {
    // SAFETY: `geteuid` has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// Return whether this user may create the name spaces of [`with_own_mounts`].
pub fn may_mount() -> bool {
    unshare().arg("true").output().is_ok_and(|output| output.status.success())
}

/// Read the golden document with this file name.
pub fn golden(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Panic unless both documents have the same keys everywhere, with values of the same type; `null` is a type of its
/// own. Each element of an array must have the shape of one of the expected elements.
pub fn assert_same_shape(found: &Value, expected: &Value, place: &str) {
    if let Err(why) = same_shape(found, expected) {
        panic!("{place}{why}");
    }
}

fn same_shape(found: &Value, expected: &Value) -> Result<(), String> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            if !found.keys().eq(expected.keys()) {
                return Err(format!(" has the keys {:?}, not {:?}", found.keys(), expected.keys()));
            }
            // An operation that never ran has no latency. A short test does not guarantee that each one runs.
            let nothing_done = found.get("count") == Some(&0.into());
            let mut values = found.iter().zip(expected.values());
            values.try_for_each(|((key, value), expected)| match value {
                Value::Null if nothing_done => Ok(()),
                _ => same_shape(value, expected).map_err(|why| format!(".{key}{why}")),
            })
        }
        (Value::Array(found), Value::Array(expected)) => {
            if found.is_empty() != expected.is_empty() {
                return Err(format!(" has {} elements, not {}", found.len(), expected.len()));
            }
            let like_one = |(index, value): (usize, &Value)| {
                let known = expected.iter().map(|one| same_shape(value, one));
                known.reduce(Result::or).unwrap_or(Ok(())).map_err(|why| format!("[{index}]{why}"))
            };
            found.iter().enumerate().try_for_each(like_one)
        }
        _ if std::mem::discriminant(found) == std::mem::discriminant(expected) => Ok(()),
        _ => Err(format!(" is {found}, where {expected} was")),
    }
}

/// Create a tree with unusual names and files: newlines, bytes that are not UTF-8, 255-byte names, symbolic links that
/// dangle, loop or lead out of the tree, a pipe, a hole, an empty file, hard links.
pub fn hostile_tree(root: &Path) {
    let name = |bytes: &[u8]| root.join(OsStr::from_bytes(bytes));
    fs::create_dir_all(root.join("deep/er/still")).unwrap();
    fs::create_dir(name(b"new\nline")).unwrap();
    fs::create_dir(name(b"\xff\xfe")).unwrap();
    fs::write(name(b"new\nline/a\nb.txt"), "needle\nhay\nneedle needle\n").unwrap();
    fs::write(name(b"\xff\xfe/\x80.TXT"), "needle").unwrap();
    fs::write(name(&[b'n'; 255]), [0u8; 5000]).unwrap();
    fs::write(name(b"-rf"), "hay\n").unwrap();
    fs::write(name(b" "), "").unwrap();
    fs::write(root.join("deep/er/still/copy"), [0u8; 5000]).unwrap();
    fs::write(root.join("deep/large"), vec![7u8; 300_000]).unwrap();
    fs::write(root.join("deep/large2"), vec![7u8; 300_000]).unwrap();
    let mut differs = vec![7u8; 300_000];
    differs[150_000] = 8;
    fs::write(root.join("deep/nearly"), differs).unwrap();
    fs::hard_link(root.join("deep/large"), root.join("deep/er/also large")).unwrap();
    let hole = fs::File::create(root.join("hole")).unwrap();
    hole.set_len(1 << 20).unwrap();
    symlink("/", root.join("to the root")).unwrap();
    symlink("..", root.join("deep/up")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let pipe = std::ffi::CString::new(root.join("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a valid C string.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
}

/// Return every path below `root` with its type (f, d, l, or o for others) and the contents of a file or the target of
/// a symbolic link. Slow and simple: a reference for the engine.
pub fn snapshot(root: &Path) -> BTreeMap<PathBuf, (char, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let about = if kind.is_dir() {
                directories.push(path.clone());
                ('d', Vec::new())
            } else if kind.is_symlink() {
                ('l', fs::read_link(&path).unwrap().into_os_string().into_vec())
            } else if kind.is_file() {
                ('f', fs::read(&path).unwrap())
            } else {
                ('o', Vec::new())
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), about);
        }
    }
    found
}
