//! What `O_DIRECT` asks of a buffer depends on the device.

use tempfile::tempdir;

use crate::common::{document, with_own_mounts};

pub(crate) fn the_buffer_has_to_suit_the_device() {
    let directory = tempdir().unwrap();
    let read = |sector: u32, buffer: &str| {
        // Detached while it is mounted, the device goes away with the mount.
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
