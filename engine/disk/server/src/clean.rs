//! Clean-up after a server that was killed. It must not wait for the server. It aborts the connection first: from then
//! on every request on the disk fails at once instead of hanging.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::sys;

/// A line of /proc/self/mountinfo: id, id of the mount that it is on, target, type and source.
struct Mount {
    id: Vec<u8>,
    on: Vec<u8>,
    target: PathBuf,
    kind: String,
    source: String,
}

impl Mount {
    /// Return whether a file system of this device is mounted. The source of a FUSE mount is a text of the user who
    /// mounted it, whoever that is, and who can put a link in the place of its target.
    fn is_of(&self, device: &str) -> bool {
        self.source == device && !self.kind.starts_with("fuse")
    }

    /// Return whether this is a mount of fslab-disk on `directory`.
    fn serves(&self, directory: &Path) -> bool {
        self.target == directory && self.kind == "fuse.fslab-disk"
    }

    /// Unmount it, unless another mount is over it: umount2(2) takes the topmost.
    fn unmount(&self, flags: libc::c_int) -> io::Result<()> {
        if mounts()?.iter().any(|other| other.target == self.target && other.on == self.id) {
            let over = format!("something else is mounted over it: umount {}", self.target.display());
            return Err(io::Error::other(over));
        }
        unless_gone(sys::unmount(&self.target, flags))
    }
}

/// Return all mounts. Any path may contain bytes that are not UTF-8, including those of unrelated mounts.
fn mounts() -> io::Result<Vec<Mount>> {
    let text = fs::read("/proc/self/mountinfo")?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

fn parse(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let end = words.iter().position(|word| *word == b"-")?;
    let text = |at: usize| Some(String::from_utf8_lossy(words.get(at)?).into_owned());
    Some(Mount {
        id: words.first()?.to_vec(),
        on: words.get(1)?.to_vec(),
        target: unescape(words.get(4)?),
        kind: text(end + 1)?,
        source: text(end + 2)?,
    })
}

/// Decode octal escapes, which the kernel writes for blanks in paths.
fn unescape(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            path.push(byte);
            rest = &after[3..];
        } else {
            path.push(first);
            rest = after;
        }
    }
    OsString::from_vec(path).into()
}

/// Return whether a loop device, by its name in /sys/block, uses the file `disk`.
fn uses(name: &Path, disk: &Path) -> bool {
    let backing = fs::read(Path::new("/sys/block").join(name).join("loop/backing_file")).unwrap_or_default();
    backing.strip_suffix(b"\n") == Some(disk.as_os_str().as_bytes())
}

/// Return the loop devices that use the file `disk`.
fn loops(disk: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let entry = entry?;
        let name = entry.file_name();
        if uses(Path::new(&name), disk) {
            found.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

/// Unmount what is mounted from a loop device, and detach it, if it still uses the file `disk`: meanwhile, another
/// program may have got it.
fn release(name: &str, disk: &Path) -> anyhow::Result<()> {
    let source = format!("/dev/{name}");
    // While it is open, the device cannot get another file.
    let device = match sys::open(Path::new(&source), libc::O_RDONLY) {
        Err(error) => return unless_gone(Err(error)).with_context(|| format!("cannot open {source}")),
        Ok(device) => device,
    };
    if !uses(Path::new(name), disk) {
        return Ok(());
    }
    for mount in mounts()?.iter().rev().filter(|mount| mount.is_of(&source)) {
        mount
            .unmount(0)
            .or_else(|_| mount.unmount(libc::MNT_DETACH))
            .with_context(|| format!("cannot unmount {}", mount.target.display()))?;
    }
    unless_gone(detach(&device)).with_context(|| format!("cannot detach {source}"))
}

fn detach(device: &OwnedFd) -> io::Result<()> {
    const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
    // SAFETY: the request takes no argument.
    let result = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_CLR_FD, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ignore errors of objects that no longer exist: they end by themselves, or another process removes them first.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    const GONE: [i32; 3] = [libc::EINVAL, libc::ENOENT, libc::ENXIO]; // not mounted, no directory, not attached
    result.or_else(|error| match error.raw_os_error() {
        Some(code) if GONE.contains(&code) => Ok(()),
        _ => Err(error),
    })
}

/// Abort the connection. The kernel does that before it checks whether the mount is in use. A mount in use stays,
/// without a server. The loop devices on its disk can then still be found by their path.
pub(crate) fn abort(directory: &Path) -> io::Result<()> {
    for mount in mounts()?.iter().filter(|mount| mount.serves(directory)) {
        match mount.unmount(libc::MNT_FORCE) {
            Err(error) if error.raw_os_error() != Some(libc::EBUSY) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Return the directory under the kernel's name. Links are followed up to its parent: the disk itself may be dead.
fn real(directory: &Path) -> io::Result<PathBuf> {
    let directory = std::path::absolute(directory)?;
    let parts =
        directory.parent().and_then(|parent| fs::canonicalize(parent).ok()).zip(directory.file_name());
    Ok(parts.map(|(parent, name)| parent.join(name)).unwrap_or(directory))
}

/// Abort the connection, unmount file systems on the disk's loop devices, detach these, and remove the directory. Refuse
/// a directory with a file `disk` that is not served: an image of somebody else, whose loop devices are theirs.
pub(crate) fn clean(directory: &Path) -> anyhow::Result<()> {
    let directory = real(directory)?;
    let disk = directory.join("disk");
    let held = loops(&disk)?;
    if mounts()?.iter().any(|mount| mount.serves(&directory)) {
        abort(&directory).with_context(|| format!("cannot abort {}", directory.display()))?;
    } else if disk.symlink_metadata().is_ok() {
        bail!(
            "{}: fslab-disk does not serve the file 'disk' in it; nothing was changed: name the directory of a virtual disk",
            directory.display()
        );
    }
    for name in &held {
        release(name, &disk)?;
    }
    for mount in mounts()?.iter().rev().filter(|mount| mount.serves(&directory)) {
        mount.unmount(libc::MNT_DETACH).with_context(|| format!("cannot unmount {}", directory.display()))?;
    }
    match fs::remove_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn blanks_in_paths() {
        assert_eq!(unescape(b"/a\\040b\\011c"), PathBuf::from("/a b\tc"));
        assert_eq!(unescape(b"/plain"), PathBuf::from("/plain"));
        assert_eq!(unescape(b"/a\\"), PathBuf::from("/a\\"));
    }

    #[test]
    fn a_directory_with_an_image_of_somebody_else_is_refused() {
        let directory = std::env::temp_dir().join(format!("fslab-clean-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("disk"), "mine").unwrap();
        let said = clean(&directory).map_err(|error| error.to_string());
        fs::remove_file(directory.join("disk")).unwrap();
        assert!(said.is_err_and(|said| said.contains("does not serve the file 'disk'")));
        clean(&directory).unwrap();
        assert!(!directory.exists());
    }

    #[test]
    fn what_is_gone_needs_no_undoing() {
        for code in [libc::EINVAL, libc::ENOENT, libc::ENXIO] {
            assert!(unless_gone(Err(io::Error::from_raw_os_error(code))).is_ok());
        }
        assert!(unless_gone(Err(io::Error::from_raw_os_error(libc::EPERM))).is_err());
    }

    #[test]
    fn paths_that_are_not_text() {
        let line = b"66 1 0:51 / /a/\xff\\134 rw,nosuid shared:1 - tmpfs \xfe rw,size=1m";
        let mount = parse(line).expect("a mount");
        assert_eq!(mount.target.as_os_str().as_bytes(), b"/a/\xff\\");
        assert_eq!(mount.kind, "tmpfs");
        assert!(parse(b"").is_none());
    }

    #[test]
    fn what_only_says_that_it_is_on_the_device_is_not_unmounted() {
        let of = |kind: &str| {
            let line = format!("66 1 7:3 / /a rw shared:1 - {kind} /dev/loop3 rw,user_id=1000");
            parse(line.as_bytes()).expect("a mount").is_of("/dev/loop3")
        };
        assert!(of("ext4") && of("btrfs"));
        assert!(!of("fuse.sshfs") && !of("fuse") && !of("fuseblk"));
    }

    #[test]
    fn a_loop_device_that_has_got_another_file_stays() {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            return; // cannot attach any
        }
        let file = std::env::temp_dir().join(format!("fslab-disk-clean-{}", std::process::id()));
        fs::write(&file, vec![0; 1 << 16]).unwrap();
        let file = fs::canonicalize(&file).unwrap();
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        let device = String::from_utf8(attached.stdout).unwrap();
        let name = device.trim().strip_prefix("/dev/").expect("losetup prints its path");
        let theirs = release(name, Path::new("/run/fslab/c/disk-1/disk"));
        let found = loops(&file).unwrap();
        let ours = release(name, &file);
        let left = loops(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(theirs.is_ok() && ours.is_ok());
        assert_eq!(found, [name]);
        assert!(left.is_empty(), "{left:?}");
    }
}
