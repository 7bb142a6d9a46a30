//! The answers of the operations on trees, compared with a slow and simple implementation.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::common::{hostile_tree, snapshot, succeed};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::tempdir;

const THREADS: [&str; 3] = ["1", "2", "5"];

fn answer(arguments: &[&str]) -> Value {
    succeed(arguments)["answer"].clone()
}

/// Return `root` and each path below it with the result of lstat(2).
fn all(root: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let below = snapshot(root).into_keys().map(|path| root.join(path));
    below.chain([root.to_owned()]).map(|path| (path.clone(), fs::symlink_metadata(path).unwrap())).collect()
}

fn check_analysis(root: &Path, threads: &str, order: &str) {
    let found =
        answer(&["analyze", root.to_str().unwrap(), "--threads", threads, "--order", order, "--top", "0"]);
    let all = all(root);
    let mut inodes = BTreeSet::new();
    let (mut files, mut symlinks, mut others, mut again, mut apparent, mut allocated) = (0, 0, 0, 0, 0, 0);
    let mut directories = 0;
    for (_, about) in &all {
        if about.is_dir() {
            directories += 1;
        } else if !inodes.insert(about.ino()) {
            again += 1;
            continue;
        } else if about.is_file() {
            files += 1;
            apparent += about.len();
        } else if about.is_symlink() {
            symlinks += 1;
        } else {
            assert!(about.file_type().is_fifo());
            others += 1;
        }
        allocated += about.blocks() * 512;
    }
    let pairs = [
        ("files", files),
        ("directories", directories),
        ("symlinks", symlinks),
        ("others", others),
        ("hard_links", again),
        ("apparent_bytes", apparent),
        ("allocated_bytes", allocated),
    ];
    for (key, expected) in pairs {
        assert_eq!(found[key], expected, "{key} with {threads} threads");
    }
    for list in ["by_extension", "by_owner", "by_age"] {
        let sum: u64 = found[list].as_array().unwrap().iter().map(|row| row["files"].as_u64().unwrap()).sum();
        assert_eq!(sum, files, "{list}");
    }
}

/// Return the number of sets of non-empty regular files with the same contents, and the number of files in them. Hard
/// links count as one file.
fn slow_duplicates(root: &Path) -> (u64, u64) {
    let mut by_contents: HashMap<Vec<u8>, BTreeSet<u64>> = HashMap::new();
    for (path, about) in all(root) {
        if about.is_file() && about.len() > 0 {
            by_contents.entry(fs::read(path).unwrap()).or_default().insert(about.ino());
        }
    }
    let sets = by_contents.values().filter(|inodes| inodes.len() > 1);
    sets.fold((0, 0), |(sets, files), inodes| (sets + 1, files + inodes.len() as u64))
}

fn check_duplicates(root: &Path, threads: &str) {
    let found = answer(&["duplicates", root.to_str().unwrap(), "--threads", threads]);
    assert_eq!(
        (found["sets"].as_u64().unwrap(), found["duplicate_files"].as_u64().unwrap()),
        slow_duplicates(root)
    );
}

fn check_search(root: &Path, threads: &str, pattern: &str) {
    let holds = |line: &&[u8]| line.windows(pattern.len()).any(|window| window == pattern.as_bytes());
    let counts = snapshot(root)
        .into_values()
        .filter(|(kind, _)| *kind == 'f')
        .map(|(_, contents)| contents.split(|&byte| byte == b'\n').filter(holds).count() as u64);
    let (files, lines) = counts.filter(|&lines| lines > 0).fold((0, 0), |(f, l), lines| (f + 1, l + lines));
    for regex in [&["-p", pattern][..], &["-E", "-p", &format!("({pattern}|\u{1}x)")]] {
        let found = answer(&[&["search", root.to_str().unwrap(), "--threads", threads], regex].concat());
        assert_eq!((&found["files_matched"], &found["lines_matched"]), (&files.into(), &lines.into()));
    }
}

fn check_mirror(root: &Path, threads: &str, extra: &[&str]) {
    let target = tempdir().unwrap();
    let copy = target.path().join("copy");
    let arguments = ["sync-write", root.to_str().unwrap(), copy.to_str().unwrap(), "--threads", threads];
    let found = answer(&[&arguments[..], extra].concat());
    assert_eq!(
        found["troubles"],
        serde_json::json!({"vanished": 0, "denied": 0, "failed": 0, "other_file_systems": 0})
    );
    assert!(snapshot(root) == snapshot(&copy), "the copy differs");
    for (path, about) in all(root) {
        let copied = fs::symlink_metadata(copy.join(path.strip_prefix(root).unwrap())).unwrap();
        assert_eq!(
            (copied.mode(), copied.mtime(), copied.mtime_nsec()),
            (about.mode(), about.mtime(), about.mtime_nsec())
        );
        assert!(about.is_dir() || copied.nlink() == about.nlink());
    }
}

#[test]
fn analysis_of_a_hostile_tree() {
    let directory = tempdir().unwrap();
    hostile_tree(directory.path());
    for threads in THREADS {
        check_analysis(directory.path(), threads, "depth");
        check_analysis(directory.path(), threads, "breadth");
    }
}

#[test]
fn duplicates_of_a_hostile_tree() {
    let directory = tempdir().unwrap();
    hostile_tree(directory.path());
    assert_eq!(slow_duplicates(directory.path()), (2, 4));
    for threads in THREADS {
        check_duplicates(directory.path(), threads);
    }
}

#[test]
fn search_of_a_hostile_tree() {
    let directory = tempdir().unwrap();
    hostile_tree(directory.path());
    for threads in THREADS {
        check_search(directory.path(), threads, "needle");
    }
    let listed = answer(&["search", directory.path().to_str().unwrap(), "-p", "needle", "--list", "9"]);
    let expected = serde_json::json!([
        {"path": "new\nline/a\nb.txt", "lines": 2},
        {"path": {"hex": "fffe2f802e545854"}, "lines": 1},
    ]);
    assert_eq!(listed["matched"], expected);
}

#[test]
fn mirror_of_a_hostile_tree() {
    let directory = tempdir().unwrap();
    hostile_tree(directory.path());
    for threads in THREADS {
        check_mirror(directory.path(), threads, &["--order", "breadth"]);
        check_mirror(directory.path(), threads, &["--buffer", "4096", "--sync", "file"]);
        check_mirror(directory.path(), threads, &["--method", "copy-file-range", "--sync", "directory"]);
    }
}

#[test]
fn reading_and_classifying_a_hostile_tree() {
    let directory = tempdir().unwrap();
    hostile_tree(directory.path());
    let root = directory.path().to_str().unwrap();
    let contents: Vec<_> =
        snapshot(directory.path()).into_values().filter(|(kind, _)| *kind == 'f').collect();
    let bytes: usize = contents.iter().map(|(_, bytes)| bytes.len()).sum();
    for threads in THREADS {
        for extra in [&["--buffer", "1000"][..], &["--fadvise", "dontneed"], &["--direct"]] {
            let found = answer(&[&["sync-read", root, "--threads", threads], extra].concat());
            assert_eq!((&found["files"], &found["bytes"]), (&contents.len().into(), &bytes.into()));
        }
        let found = answer(&["classify", root, "--threads", threads]);
        assert_eq!(found["files"], contents.len());
        assert_eq!((&found["by_content"]["empty"], &found["by_content"]["text"]), (&1.into(), &3.into()));
    }
}

#[test]
fn deleting_a_hostile_tree() {
    for threads in THREADS {
        let directory = tempdir().unwrap();
        let (tree, outside) = (directory.path().join("tree"), directory.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        hostile_tree(&tree);
        std::os::unix::fs::symlink(&outside, tree.join("deep/out")).unwrap();
        let before = all(&tree);
        let directories = before.iter().filter(|(_, about)| about.is_dir()).count();
        let found = answer(&["delete", tree.to_str().unwrap(), "--threads", threads]);
        assert_eq!(
            (&found["files"], &found["directories"]),
            (&(before.len() - directories).into(), &directories.into())
        );
        assert!(!tree.exists());
        assert!(outside.join("kept").exists());
    }
}

#[test]
fn one_huge_directory_is_shared_and_counted_right() {
    let directory = tempdir().unwrap();
    for index in 0..20_000 {
        fs::write(directory.path().join(format!("file {index}")), "").unwrap();
    }
    for index in 0..3_000 {
        fs::create_dir(directory.path().join(format!("directory {index}"))).unwrap();
    }
    let root = directory.path().to_str().unwrap();
    for threads in THREADS {
        let found = answer(&["analyze", root, "--threads", threads]);
        assert_eq!((&found["files"], &found["directories"]), (&20_000.into(), &3_001.into()));
    }
    let found = answer(&["delete", root, "--keep-root", "--threads", "4"]);
    assert_eq!((&found["files"], &found["directories"]), (&20_000.into(), &3_000.into()));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// A directory tree whose files are built from a few patterns, so that many contents are equal.
#[derive(Debug, Clone)]
enum Item {
    File(Vec<u8>),
    Directory(BTreeMap<u8, Item>),
}

fn item() -> impl Strategy<Value = Item> {
    const UNITS: [&[u8]; 6] = [b"needle", b"\n", b"hay", b"\0\xff", b"need", b"le"];
    let unit = prop::sample::select(&UNITS[..]);
    let pattern = prop::collection::vec(unit, 0..12).prop_map(|parts| parts.concat());
    let contents = (pattern, prop_oneof![Just(1usize), Just(700), Just(9000)]);
    let file = contents.prop_map(|(pattern, times)| Item::File(pattern.repeat(times)));
    file.prop_recursive(4, 40, 8, |inner| {
        prop::collection::btree_map(any::<u8>(), inner, 0..8).prop_map(Item::Directory)
    })
}

fn make(item: &Item, path: &Path) {
    match item {
        Item::File(contents) => fs::write(path, contents).unwrap(),
        Item::Directory(items) => {
            fs::create_dir(path).unwrap();
            for (name, item) in items {
                make(item, &path.join(format!("{name}")));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_trees(items in prop::collection::btree_map(any::<u8>(), item(), 0..8), threads in 1usize..5) {
        let directory = tempdir().unwrap();
        let root = directory.path().join("tree");
        make(&Item::Directory(items), &root);
        let threads = threads.to_string();
        check_analysis(&root, &threads, "depth");
        check_duplicates(&root, &threads);
        check_search(&root, &threads, "needle");
        check_mirror(&root, &threads, &[]);
        let files = snapshot(&root).len();
        let found = answer(&["delete", root.to_str().unwrap(), "--threads", &threads]);
        prop_assert_eq!(found["files"].as_u64().unwrap() + found["directories"].as_u64().unwrap(), files as u64 + 1);
        prop_assert!(!root.exists());
    }
}
