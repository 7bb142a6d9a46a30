//! Read errors: a device whose end is lost while it contains files.

use tempfile::tempdir;

use crate::common::{document, with_own_mounts};

/// Create a file system in an image, and truncate the image within the first file. The part of it that can still be
/// read is not a multiple of the engine's buffer. `first` is the file at the lower address, and `third` is a hard link
/// to it. `fallocate` makes each file one extent; without it, early write-back would split the file. Read-ahead is off,
/// so that each block is read alone: a large folio that contains the end of the image cannot be read at all.
const PRELUDE: &str = r#"
    mount -t tmpfs -o size=64m none "$DIR"; cd "$DIR"; mkdir at
    truncate -s 24m image; mkfs.ext4 -q -O ^has_journal -b 4096 image
    mount -o loop image at
    mkdir at/set
    for name in a b; do
        fallocate -l 3000000 at/set/$name
        head -c 3000000 /dev/zero | tr '\0' 'x' | dd of=at/set/$name bs=64k conv=notrunc iflag=fullblock status=none
        sync -f at
        filefrag at/set/$name | grep -q ': 1 extent' || { filefrag -v at/set/$name >&2; exit 3; }
        echo "$(filefrag -v at/set/$name | awk '$1 == "0:" { split($4, at, "."); print at[1] }') $name"
    done > begins
    sort -n -o begins begins
    { read -r start name; read -r _ other; } < begins
    mv at/set/$name at/set/first; mv at/set/$other at/set/second
    ln at/set/first at/set/third
    umount at
    mount -o loop,ro image at; blockdev --setra 0 "$(findmnt -n -o SOURCE at)"
    truncate -s $(( (start + 333) * 4096 )) image
"#;

/// Count the blocks of 4096 bytes of `first` that can be read. Fail if all can be read, or if the count is not above 64
/// or is a multiple of 64 (the engine's default buffer of 256 KiB).
const READABLE: &str = r#"
    count=0; while dd if=at/set/first of=/dev/null bs=4096 count=1 skip=$count status=none 2>/dev/null
        do count=$((count + 1)); [ $count -lt 732 ]; done
    [ $count -gt 64 ] && [ $((count % 64)) -ne 0 ] || { echo "$count blocks can be read" >&2; exit 3; }
"#;

pub(crate) fn a_bad_sector_is_no_end_of_a_file() {
    let directory = tempdir().unwrap();
    // The command, the key of the answer that must be 0, and the number of names that must fail.
    let commands = [
        ("sync-read at/set", "files", 3),
        ("sync-read at/set --direct", "files", 3),
        ("search at/set -p needle", "files", 3),
        ("duplicates at/set", "sets", 2),
        ("sync-write at/set copy", "files", 3),
        ("sync-write at/set copy", "hard_links", 3),
    ];
    for (command, got, failed) in commands {
        let script =
            format!("{PRELUDE}{READABLE}\"$ENGINE\" {command} --json; [ -z \"$(ls copy 2>/dev/null)\" ]");
        let output = with_own_mounts(directory.path(), &script);
        let (found, status) = document(&output);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(status, Some(0), "{command}: {found:#} {said}");
        let answer = &found["answer"];
        assert_eq!(
            (&answer[got], &answer["troubles"]["failed"]),
            (&0.into(), &failed.into()),
            "{command}: {found:#}"
        );
        // Bytes that were read before the error count: they were moved in the measured time.
        let moved = found["operations"][0]["bytes"].as_u64();
        assert!(command.starts_with("duplicates") || moved > Some(0), "{command}: {found:#}");
    }
}

/// Let a workload create its file in an image, truncate the image within the file, and run the workload.
const OF_WORKLOAD: &str = r#"
    mount -t tmpfs -o size=64m none "$DIR"; cd "$DIR"; mkdir at
    truncate -s 24m image; mkfs.ext4 -q -O ^has_journal -b 4096 image
    mount -o loop image at
    "$ENGINE" wml --script "$WORKLOAD" --dir at --create-only > /dev/null
    file=$(find at/fslab-wml -type f); [ "$(stat -c %s "$file")" -eq 3000000 ]
    sync -f at
    first=$(filefrag -v "$file" | awk '$1 == "0:" { split($4, a, "."); print a[1] }')
    umount at
    mount -o loop,ro image at
    truncate -s $(( (first + 333) * 4096 )) image
    "$ENGINE" wml --script "$WORKLOAD" --dir at --reuse --json
"#;

/// Test a sequential read, a random read and a read of the whole file that reach the bad sector.
pub(crate) fn a_bad_sector_ends_a_workload() {
    let directory = tempdir().unwrap();
    for read in
        ["read name=r,iosize=4m", "read name=r,iosize=3000000,random", "readwholefile name=r,iosize=4m"]
    {
        let workload = format!(
            "define file name=set,path=/tmp,size=3000000,prealloc,reuse,readonly
             define process name=p {{ thread name=t,memsize=4m {{ flowop {read},filename=set
             flowop finishoncount name=f,value=1 }} }}
             run 60"
        );
        let script = format!("WORKLOAD='{workload}'\n{OF_WORKLOAD}");
        let (found, status) = document(&with_own_mounts(directory.path(), &script));
        assert_eq!((status, &found["error"]["kind"]), (Some(1), &"io".into()), "{read}: {found:#}");
        assert!(found["error"]["message"].as_str().unwrap().contains("read all of"), "{read}: {found:#}");
    }
}
