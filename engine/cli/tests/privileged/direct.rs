//! The alignment that `O_DIRECT` requires, which depends on the device.

use tempfile::tempdir;

use crate::common::{document, with_own_mounts};

pub(crate) fn the_buffer_has_to_suit_the_device() {
    let directory = tempdir().unwrap();
    let read = |sector: u32, buffer: &str| {
        // The device is detached while it is mounted, so the kernel removes it with the mount.
        let script = format!(
            r#"mount -t tmpfs -o size=64m none "$DIR"; cd "$DIR"; mkdir at; truncate -s 32m image
            device=$(losetup --find --show --direct-io=off --sector-size {sector} image)
            trap 'losetup -d $device' EXIT
            mkfs.ext4 -q -b 4096 $device; mount $device at; head -c 10000 /dev/zero > at/file; sync -f at
            "$ENGINE" sync-read at -x --direct --buffer {buffer} --json"#
        );
        document(&with_own_mounts(directory.path(), &script))
    };
    let (found, status) = read(4096, "512");
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"invalid".into()), "{found:#}");
    assert!(found["error"]["message"].as_str().unwrap().contains("4096 bytes"), "{found:#}");
    for (sector, buffer) in [(512, "512"), (512, "8k"), (4096, "4096"), (4096, "64k")] {
        let (found, status) = read(sector, buffer);
        assert_eq!((status, &found["answer"]["bytes"]), (Some(0), &10_000.into()), "{sector}: {found:#}");
        assert_eq!(found["warnings"], serde_json::json!([]), "past the page cache");
    }
}

/// Test that whole files are read and written with aligned requests, and that a misaligned `iosize` is an error that
/// names the required multiple.
pub(crate) fn a_workload_asks_for_what_suits_the_device() {
    let directory = tempdir().unwrap();
    let run = |sector: u32, flowop: &str| {
        let script = format!(
            r#"mount -t tmpfs -o size=64m none "$DIR"; cd "$DIR"; mkdir at; truncate -s 32m image
            device=$(losetup --find --show --direct-io=off --sector-size {sector} image)
            trap 'losetup -d $device' EXIT
            mkfs.ext4 -q -b 4096 $device; mount $device at
            "$ENGINE" wml --dir at --json --script 'define file name=set,path=/tmp,size=10000,prealloc
            define process name=p {{ thread name=t,memsize=64k {{ flowop {flowop},filename=set,directio
            flowop finishoncount name=f,value=3 }} }}
            run 60'"#
        );
        document(&with_own_mounts(directory.path(), &script))
    };
    for flowop in ["read name=f,iosize=512", "write name=f,iosize=512", "aiowrite name=f,iosize=512,random"] {
        let (found, status) = run(4096, flowop);
        assert_eq!((status, &found["error"]["kind"]), (Some(1), &"invalid".into()), "{found:#}");
        assert!(
            found["error"]["message"].as_str().unwrap().contains("4096 bytes on this file system"),
            "{found:#}"
        );
    }
    // 10,000 bytes are not a multiple of a sector: 19 of 512 bytes and a part, or 2 of 4096 bytes and a part.
    for (sector, flowop, bytes) in [
        (512, "read name=f,iosize=512", 3 * 512),
        (512, "write name=f,iosize=512", 3 * 512),
        (512, "read name=f,iosize=512,random", 3 * 512),
        (4096, "readwholefile name=f,iosize=4096", 3 * 10_000),
        (4096, "read name=f,iosize=64k,random", 3 * 10_000),
        (4096, "writewholefile name=f,iosize=4096", 3 * 10_000),
    ] {
        let (found, status) = run(sector, flowop);
        assert_eq!(
            (status, &found["operations"][0]["bytes"]),
            (Some(0), &bytes.into()),
            "{flowop}: {found:#}"
        );
        assert!(found["warnings"].as_array().unwrap().iter().all(|one| one["kind"] != "not_direct"));
    }
}
