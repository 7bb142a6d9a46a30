//! Protection of directories that must not be filled or emptied, to prevent the loss of unrelated data.
//!
//! The last component of the path must be the name of a real directory. It is opened once, relative to its parent and
//! without following symbolic links. All later operations use this descriptor.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::attributes::Attributes;
use crate::error::{Context, Error, Result};
use crate::fast_map::FileId;
use crate::mounts::Mounts;
use crate::sys;
use crate::walk::{Dents, entries};

/// File with the home directories of all local accounts.
const ACCOUNTS: &str = "/etc/passwd";
/// System directories (hier(7)): neither they nor anything below them may be filled or emptied.
/// The state of the system's own services and package managers is part of it.
const SYSTEM: [&str; 18] = [
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/run/systemd",
    "/run/udev",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/dpkg",
    "/var/lib/pacman",
    "/var/lib/rpm",
    "/var/lib/systemd",
    "/var/spool",
];
/// Device nodes and their names: system directories too, without other file systems below them (`/dev/shm`).
const DEVICES: &str = "/dev";
/// What is directly in these belongs to a program. Directories further below them may be filled or emptied.
const OF_PROGRAMS: [&str; 5] = ["/run", "/var", "/var/cache", "/var/lib", "/var/log"];
/// Shared directories: they may not be filled or emptied themselves, but directories below them may.
const SHARED: [&str; 14] = [
    "/dev",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/tmp",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];
/// Directory at the root of an ext2, ext3 or ext4 file system, which e2fsck(8) needs.
const LOST_AND_FOUND: &[u8] = b"lost+found";
/// How the names of the engine's own work directories begin. They may lie in /home, if that is under test.
const WORK_DIRECTORIES: &[u8] = b"fslab-";
/// Flags to open a directory only as a starting point for other calls. `O_PATH` needs no read permission.
const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A directory to be filled or emptied, identified by its parent directory and its name.
#[derive(Debug)]
pub struct Target {
    around: OwnedFd,
    name: CString,
    path: PathBuf,
}

impl Target {
    /// Create the target of a path that the user gave. The target need not exist.
    ///
    /// # Errors
    /// Kind `invalid` if the path does not end in a name (`/`, `.`, `..`); or if the parent directory cannot be opened.
    pub fn named(path: &Path) -> Result<Self> {
        let Some((around, name)) = split(path.as_os_str().as_bytes()) else {
            return Err(refused(path, "does not end in the name of a directory"));
        };
        let around = Path::new(OsStr::from_bytes(around));
        let opened = rustix::fs::openat(CWD, around, PLACE | OFlags::DIRECTORY, Mode::empty());
        Ok(Self { around: opened.context("open", || around)?, name: name_of(path, name)?, path: path.into() })
    }

    /// Create the target `place` below an open directory, without following symbolic links or crossing mount points.
    /// `path` is used in messages only.
    ///
    /// # Errors
    /// If the parent directory cannot be opened.
    pub fn beneath(base: impl AsFd, place: &Path, path: PathBuf) -> Result<Self> {
        let (parent, name) = (place.parent().unwrap_or(Path::new("")), place.file_name().unwrap_or_default());
        let around = sys::open_within(base, parent.as_os_str().as_bytes()).context("open", || &path)?;
        Ok(Self { around, name: name_of(&path, name.as_bytes())?, path })
    }

    /// Return the path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Open the directory if it may be emptied.
    ///
    /// # Errors
    /// Kind `invalid` if the target is not a directory, or is a symbolic link, a mount point, the root of a subvolume,
    /// `lost+found` or a system directory, or if it is or contains the current directory or a home directory. Otherwise
    /// the error of the failed system call.
    pub fn open(&self) -> Result<OwnedFd> {
        let opened = match sys::open_here(&self.around, &self.name) {
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(refused(&self.path, "is not a directory, or is a symbolic link to one"));
            }
            Err(Errno::XDEV) => return Err(refused(&self.path, "is a mount point")),
            other => other.context("open", || &self.path)?,
        };
        let stat = |file: &OwnedFd| Attributes::of_open(file).context("stat", || &self.path);
        let (this, around) = (stat(&opened)?.id, stat(&self.around)?.id);
        if self.name.as_bytes() == LOST_AND_FOUND {
            return Err(refused(&self.path, "is where fsck puts the files that it finds"));
        }
        if this.device != around.device {
            return Err(refused(&self.path, "is the root of a file system or subvolume"));
        }
        let current = rustix::fs::openat(CWD, c".", PLACE, Mode::empty()).and_then(upwards);
        if current.context("check the parents of", || ".")?.contains(&this) {
            return Err(refused(&self.path, "is the current directory or contains it"));
        }
        let ours = self.name.as_bytes().starts_with(WORK_DIRECTORIES);
        if let Some(why) = is_protected(&opened, ours).context("check the parents of", || &self.path)? {
            return Err(refused(&self.path, why));
        }
        if homes().iter().any(|home| holds(this, home)) || (!ours && lies_in_homes(around)) {
            return Err(refused(&self.path, "is a home directory or contains one"));
        }
        Ok(opened)
    }

    /// Create the directory and open it. A refusal leaves nothing.
    ///
    /// # Errors
    /// Kind `exists` if it exists; those of [`Target::open`].
    pub fn make(&self) -> Result<OwnedFd> {
        rustix::fs::mkdirat(&self.around, &self.name, sys::DIRECTORY_MODE)
            .context("create directory", || &self.path)?;
        self.open().inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&self.around, &self.name, AtFlags::REMOVEDIR); // the refusal is what matters
        })
    }

    /// Create the directory, or open it if it exists.
    ///
    /// # Errors
    /// Those of [`Target::open`].
    pub fn make_or_open(&self) -> Result<OwnedFd> {
        if Attributes::of(&self.around, &self.name).is_ok() { self.open() } else { self.make() }
    }

    /// Create the directory, or open it if it exists. An existing directory must be empty, and [`Target::open`] must
    /// permit it.
    ///
    /// # Errors
    /// Those of [`Target::open`]; kind `invalid` if the directory is not empty.
    pub fn make_or_open_empty(&self) -> Result<OwnedFd> {
        let opened = self.make_or_open()?;
        if is_empty(&opened).context("list", || &self.path)? {
            return Ok(opened);
        }
        Err(Error::Invalid(format!(
            "{} is not empty: choose a new or an empty directory",
            self.path.display()
        )))
    }

    /// Return whether the target is `directory` itself or lies below it. The target need not exist.
    ///
    /// # Errors
    /// If a parent directory cannot be opened or examined.
    pub fn is_within(&self, directory: impl AsFd) -> Result<bool> {
        let other = Attributes::of_open(directory).context("stat", || &self.path)?.id;
        let itself = Attributes::of(&self.around, &self.name).is_ok_and(|found| found.id == other);
        let around = rustix::fs::openat(&self.around, c".", PLACE, Mode::empty()).and_then(upwards);
        Ok(itself || around.context("check the parents of", || &self.path)?.contains(&other))
    }

    /// Remove the directory, which must be empty and still be the one that is open as `opened`.
    ///
    /// # Errors
    /// `ENOENT` if the name refers to another directory; otherwise the error of the failed system call, such as
    /// `ENOTEMPTY`.
    pub fn remove(&self, opened: impl AsFd) -> rustix::io::Result<()> {
        let (found, expected) = (Attributes::of(&self.around, &self.name)?, Attributes::of_open(opened)?);
        if found.id != expected.id {
            return Err(Errno::NOENT);
        }
        rustix::fs::unlinkat(&self.around, &self.name, AtFlags::REMOVEDIR)
    }

    /// Make the directory entries of the parent directory durable, with fsync(2).
    ///
    /// # Errors
    /// If the parent directory cannot be opened or synced.
    pub fn sync_name(&self) -> rustix::io::Result<()> {
        rustix::fs::fsync(sys::open_directory(&self.around, c".")?)
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::Invalid(format!("refused: {} {why}; choose another directory", path.display()))
}

fn name_of(path: &Path, name: &[u8]) -> Result<CString> {
    CString::new(name).map_err(|_| refused(path, "has a zero byte in its name"))
}

/// Split a path into parent and last component. Returns `None` if the last component is not a name. Works on bytes,
/// because `Path` treats `a/.` like `a`.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().rposition(|&byte| byte != b'/')? + 1;
    let path = &path[..end];
    let (around, name) = match path.iter().rposition(|&byte| byte == b'/') {
        None => (&b"."[..], path),
        Some(0) => (&b"/"[..], &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
    };
    (!matches!(name, b"." | b"..")).then_some((around, name))
}

/// Return the identities of this directory and of all its ancestors. The loop ends where `..` leads to the same
/// directory on the same mount. Only the root does so: a bind mount can have the same identity as its parent, but not
/// the same mount ID.
fn upwards(mut at: OwnedFd) -> rustix::io::Result<Vec<FileId>> {
    let (mut found, mut last) = (Vec::new(), None);
    loop {
        let id = Attributes::of_open(&at)?.id;
        let mount = rustix::fs::statx(&at, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id;
        if last == Some((id, mount)) {
            return Ok(found);
        }
        found.push(id);
        last = Some((id, mount));
        at = rustix::fs::openat(&at, c"..", PLACE, Mode::empty())?;
    }
}

fn is_empty(directory: &OwnedFd) -> rustix::io::Result<bool> {
    let mut dents = Dents::default();
    loop {
        let bytes = dents.read(directory)?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if entries(bytes).any(|entry| !entry.is_dot()) {
            return Ok(false);
        }
    }
}

/// Return why the directory must not be touched, if it belongs to the system. Without this check, root could destroy
/// the system by mistyping a path. A directory is known by its identity, and by its place in its file system: a bind
/// mount hides what is around it. `ours`: it is a work directory of the engine, by its name.
fn is_protected(directory: &OwnedFd, ours: bool) -> rustix::io::Result<Option<&'static str>> {
    let open = |path: &&str| rustix::fs::openat(CWD, *path, PLACE, Mode::empty()).ok();
    let system: Vec<OwnedFd> = SYSTEM.iter().filter_map(open).collect();
    let ids = |opened: &[OwnedFd]| -> rustix::io::Result<Vec<FileId>> {
        opened.iter().map(|one| Ok(Attributes::of_open(one)?.id)).collect()
    };
    let around = upwards(rustix::fs::openat(directory, c".", PLACE, Mode::empty())?)?;
    let (own, shared) = (ids(&system)?, ids(&SHARED.iter().filter_map(open).collect::<Vec<_>>())?);
    let lies_in_system = || -> std::io::Result<Option<&'static str>> {
        let mounts = Mounts::read()?;
        let Some(place) = mounts.place(directory)? else { return Ok(None) };
        for one in &system {
            if mounts.place(one)?.is_some_and(|of_system| place.is_within(&of_system)) {
                return Ok(Some("is a system directory"));
            }
        }
        Ok(mounts.is_covered(&place).then_some("is a mount point"))
    };
    let devices = ids(&open(&DEVICES).into_iter().collect::<Vec<_>>())?;
    let is_node = |id: &FileId| around.contains(id) && around[0].device == id.device;
    let programs = ids(&OF_PROGRAMS.iter().filter_map(open).collect::<Vec<_>>())?;
    let of_program = !ours && around.get(1).is_some_and(|id| programs.contains(id));
    if of_program
        || devices.iter().any(is_node)
        || around.iter().any(|id| own.contains(id))
        || shared.contains(&around[0])
    {
        return Ok(Some("is a system directory"));
    }
    lies_in_system().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Return the home directories of all local accounts, and `$HOME`.
fn homes() -> Vec<PathBuf> {
    let accounts = std::fs::read(ACCOUNTS).unwrap_or_default();
    let homes = accounts.split(|&byte| byte == b'\n').filter_map(|line| line.split(|&b| b == b':').nth(5));
    let homes =
        homes.filter(|home| home.starts_with(b"/")).map(|home| PathBuf::from(OsStr::from_bytes(home)));
    homes.chain(std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())).collect()
}

/// Return whether `directory` is or contains this home directory. A home directory that cannot be opened counts as not
/// contained, because it cannot be emptied either.
fn holds(directory: FileId, home: &Path) -> bool {
    let around = rustix::fs::openat(CWD, home, PLACE, Mode::empty()).and_then(upwards);
    around.is_ok_and(|around| around.contains(&directory))
}

/// Return whether `around` has the home directories, also those of accounts that are not local.
fn lies_in_homes(around: FileId) -> bool {
    let homes = rustix::fs::openat(CWD, c"/home", PLACE, Mode::empty()).and_then(Attributes::of_open);
    homes.is_ok_and(|homes| homes.id == around)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_at_the_end_of_a_path_is_a_target() {
        for path in
            ["", "/", "//", "/.", "/..", "//..//", ".", "./", "..", "../", "a/.", "a/..", "a/./", "./a/../.."]
        {
            assert_eq!(split(path.as_bytes()), None, "{path}");
        }
        let names =
            [("a", ".", "a"), ("a//", ".", "a"), ("/a", "/", "a"), ("//a/", "/", "a"), ("../a", "..", "a")];
        let deeper =
            [("a/../b", "a/..", "b"), ("a/b///", "a", "b"), ("a/...", "a", "..."), ("a//b", "a/", "b")];
        for (path, around, name) in names.into_iter().chain(deeper) {
            assert_eq!(split(path.as_bytes()), Some((around.as_bytes(), name.as_bytes())), "{path}");
        }
    }

    /// The test only opens these directories and deletes nothing in them.
    #[test]
    fn directories_of_the_system_are_no_targets() {
        for path in [
            "/etc",
            "/etc/ssl",
            "/usr",
            "/usr/share",
            "/usr/share/doc",
            "/proc/sys",
            "/sys/kernel",
            "/var/lib",
        ] {
            let refusal = Target::named(Path::new(path)).and_then(|target| target.open().map(drop));
            let said = refusal.expect_err(path).to_string();
            assert!(said.contains("refused: "), "{path}: {said}");
        }
        let own = std::env::temp_dir().join(format!("fslab-guard-{}", std::process::id()));
        std::fs::create_dir(&own).unwrap();
        let opened = Target::named(&own).and_then(|target| target.open().map(drop));
        std::fs::remove_dir(&own).unwrap();
        opened.unwrap();
    }

    #[test]
    fn the_root_is_around_everything_and_accounts_have_homes() {
        let at = |path: &Path| rustix::fs::openat(CWD, path, PLACE, Mode::empty()).unwrap();
        let root = Attributes::of_open(at(Path::new("/"))).unwrap().id;
        assert_eq!(upwards(at(Path::new("/"))).unwrap(), [root]);
        assert_eq!(upwards(at(Path::new("/proc/self"))).unwrap().last(), Some(&root));
        assert!(homes().iter().any(|home| holds(root, home)));
    }
}
