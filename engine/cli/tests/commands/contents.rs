//! File contents, block by block: only the requested copies contain equal blocks.

use std::collections::HashMap;
use std::path::Path;

use crate::common::succeed;
use crate::common::wml::{files, script};
use tempfile::tempdir;

/// Return the number of whole blocks of 4 KiB in all files below a directory, and how many of them repeat another one.
fn blocks(directory: &Path) -> (usize, usize) {
    let mut found: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
                continue;
            }
            for block in std::fs::read(entry.path()).unwrap().chunks_exact(4096) {
                *found.entry(block.to_vec()).or_default() += 1;
            }
        }
    }
    let all: usize = found.values().sum();
    (all, all - found.len())
}

/// Test that blocks repeat only in copies of files, whatever the compressibility.
#[test]
fn the_share_of_copies_is_exact_in_files_and_in_blocks() {
    for compressibility in ["0", "0.5", "1"] {
        let directory = tempdir().unwrap();
        let root = directory.path().join("set");
        let class = ["--class", "fixed:500:20k:fixed", "--duplicates", "0.2", "--compressibility"];
        let made = succeed(&[&["populate", root.to_str().unwrap()], &class[..], &[compressibility]].concat());
        assert_eq!(made["answer"]["duplicates"]["redundant_files"], 100);
        assert_eq!(blocks(&root), (500 * 5, 100 * 5), "{compressibility}");
    }
}

#[test]
fn no_block_of_many_small_files_is_there_twice() {
    let directory = tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    succeed(&["small-files", root, "--files", "3000", "--size", "8k", "--operations", "create"]);
    assert_eq!(blocks(directory.path()), (6000, 0));
}

/// Test both the files created before the run and those written by flowops.
#[test]
fn no_block_of_a_workload_is_there_twice() {
    let directory = tempdir().unwrap();
    let text = "set mode quit alldone\n\
        define fileset name=a,path=/tmp,entries=100,size=40k,dirwidth=20,prealloc=50\n\
        define fileset name=b,path=/tmp,entries=50,size=40k,dirwidth=20,prealloc=100\n\
        define process name=p { thread name=t,instances=2,memsize=16k {\n\
          flowop createfile name=create,filesetname=a,fd=1\n\
          flowop writewholefile name=write,fd=1,iosize=8k\n\
          flowop appendfile name=append,fd=1,iosize=8k\n\
          flowop closefile name=close,fd=1 } }\nrun\n";
    script(directory.path(), text, &[]);
    let whole: usize = files(directory.path()).iter().map(|(_, length)| length / 4096).sum();
    assert_eq!(blocks(directory.path()), (whole, 0));
    assert_eq!(whole, 50 * 12 + 100 * 10);
}
