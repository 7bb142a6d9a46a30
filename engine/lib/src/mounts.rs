//! Where a directory lies in its file system, whatever mounts lead to it: a bind mount shows a directory below another
//! one, but not what is around it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A place in a file system: its device number, as `major:minor`, and the path from its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    device: Vec<u8>,
    path: PathBuf,
}

impl Place {
    /// Return whether this is `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.device == other.device && self.path.starts_with(&other.path)
    }
}

/// A line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug)]
struct Mount {
    id: Vec<u8>,
    parent: Vec<u8>,
    root: Place,
    target: PathBuf,
}

/// The mounts of this process.
#[derive(Debug)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Read them.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read("/proc/self/mountinfo")?))
    }

    fn parse(text: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let mut words = line.split(|&byte| byte == b' ');
            let (id, parent, device) = (words.next()?, words.next()?, words.next()?);
            let root = Place { device: device.into(), path: unescaped(words.next()?) };
            Some(Mount { id: id.into(), parent: parent.into(), root, target: unescaped(words.next()?) })
        };
        Self(text.split(|&byte| byte == b'\n').filter_map(mount).collect())
    }

    /// Return the place of an open directory; `None` if it is not below the root of this process.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn place(&self, directory: impl AsFd) -> io::Result<Option<Place>> {
        let number = directory.as_fd().as_raw_fd();
        let path = std::fs::read_link(format!("/proc/self/fd/{number}"))?;
        let facts = std::fs::read(format!("/proc/self/fdinfo/{number}"))?;
        let id = facts.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"mnt_id:"));
        Ok(id.and_then(|id| self.find(id.trim_ascii())).and_then(|mount| mount.place(&path)))
    }

    /// Return whether something is mounted on this place, here or where another mount shows it.
    pub fn is_covered(&self, place: &Place) -> bool {
        self.0.iter().any(|mount| {
            self.find(&mount.parent).and_then(|parent| parent.place(&mount.target)).as_ref() == Some(place)
        })
    }

    fn find(&self, id: &[u8]) -> Option<&Mount> {
        self.0.iter().find(|mount| mount.id == id)
    }
}

impl Mount {
    fn place(&self, path: &Path) -> Option<Place> {
        let path = self.root.path.join(path.strip_prefix(&self.target).ok()?);
        Some(Place { device: self.root.device.clone(), path: path.components().collect() })
    }
}

/// Decode space, tab, newline and backslash, which the kernel writes as a backslash and three octal digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut found = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let digits =
            after.get(..3).filter(|_| byte == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => (found.push(code), rest = &after[3..]).1,
            None => (found.push(byte), rest = after).1,
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_mount_does_not_change_the_place() {
        let mounts = Mounts::parse(
            b"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
              30 20 8:1 /usr/share /mnt/a\\040b rw - ext4 /dev/sda1 rw\n\
              31 20 8:2 / /home rw - ext4 /dev/sda2 rw\n",
        );
        let at = |id: &str, path: &str| mounts.find(id.as_bytes()).unwrap().place(Path::new(path)).unwrap();
        let system = at("20", "/usr");
        assert!(at("30", "/mnt/a b/doc").is_within(&system));
        assert_eq!(at("30", "/mnt/a b/doc"), at("20", "/usr/share/doc"));
        assert!(!at("31", "/home/usr").is_within(&system));
        assert!(!at("20", "/usrlocal").is_within(&system));
        assert!(mounts.is_covered(&at("20", "/home")));
        assert!(!mounts.is_covered(&at("20", "/usr/share")));
        assert!(mounts.find(b"99").is_none());
    }
}
