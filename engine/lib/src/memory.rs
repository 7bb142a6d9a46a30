//! Memory: how much is free, and buffers that are refused before they drive the machine out of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What is left to the rest of the system, as a share of what is free.
const LEFT: u64 = 16;
/// From this size on a list that grows is held against what is free: to ask the kernel costs more than a small one.
const LARGE: u64 = 1 << 20;

/// How much memory the process may still use: what is free in the system and within each control group that
/// it is in, less a sixteenth. `None` where the kernel does not say.
pub fn free() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let system = read(Path::new("/proc/meminfo")).and_then(|text| available(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let groups = limits_of(&groups).into_iter().filter_map(|files| {
        let [limit, used, stat] = files.map(|path| read(&path));
        headroom(&limit?, &used?, &stat.unwrap_or_default())
    });
    system.into_iter().chain(groups).min().map(|bytes| bytes - bytes / LEFT)
}

/// Fails if so much memory is not free.
pub fn need(what: &str, bytes: u64) -> Result<()> {
    match free() {
        Some(free) if bytes > free => Err(too_much(what, bytes, Some(free))),
        _ => Ok(()),
    }
}

/// A buffer of zeros whose pages are there already: touching them costs no time later.
pub fn zeroed(length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| too_much("a buffer", length as u64, free()))?;
    // Else the compiler makes a `calloc` of the two, whose pages come one by one when they are used.
    let mut bytes = std::hint::black_box(bytes);
    bytes.resize(length, 0);
    Ok(bytes)
}

/// An empty list with room for so many, or an error that says what it was for.
pub fn room_for<T>(what: &str, count: u64) -> Result<Vec<T>> {
    let bytes = count.saturating_mul(size_of::<T>() as u64);
    need(what, bytes)?;
    let mut list = Vec::new();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    list.try_reserve_exact(count).map_err(|_| too_much(what, bytes, free()))?;
    Ok(list)
}

/// Makes room for more in a list that grows with what is found, or fails with what the list is.
#[inline]
pub fn grow<T>(what: &str, list: &mut Vec<T>, more: usize) -> Result<()> {
    if list.capacity() - list.len() >= more { Ok(()) } else { make_room(what, list, more) }
}

/// It doubles, as any list does; the kernel moves the pages of a long one, and copies none.
#[cold]
fn make_room<T>(what: &str, list: &mut Vec<T>, more: usize) -> Result<()> {
    let count = more.max(list.capacity());
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    if bytes >= LARGE {
        need(what, bytes)?;
    }
    list.try_reserve(more).map_err(|_| too_much(what, bytes, free()))
}

fn too_much(what: &str, bytes: u64, free: Option<u64>) -> Error {
    Error::Memory { what: what.to_owned(), bytes, free }
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The files that tell limit, use and statistics of each control group from ours up to the root, of either
/// version.
fn limits_of(groups: &str) -> Vec<[PathBuf; 3]> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (root, names) = match controllers {
            "" => ("/sys/fs/cgroup", ["memory.max", "memory.current"]),
            list if list.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => continue,
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let file = |name| Path::new(root).join(group).join(name);
            found.push([file(names[0]), file(names[1]), file("memory.stat")]);
        }
    }
    found
}

/// What a group may still use; the pages of files that it has cached can be taken back.
fn headroom(limit: &str, used: &str, stat: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    let used: u64 = used.trim().parse().ok()?;
    let cached = stat.lines().filter_map(|line| line.split_once(' '));
    let cached = cached.filter(|(name, _)| ["inactive_file", "active_file"].contains(name));
    let cached: u64 = cached.filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok()).sum();
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_free() {
        let text = "MemTotal:  8000 kB\nMemFree:  100 kB\nMemAvailable:  4000 kB\n";
        assert_eq!(available(text), Some(4000 << 10));
        assert_eq!(available("MemTotal: 8000 kB\n"), None);
    }

    #[test]
    fn a_group_has_what_is_neither_used_nor_only_cached() {
        let stat = "anon 300\nfile 200\ninactive_file 150\nactive_file 20\n";
        assert_eq!(headroom("1000\n", "600\n", stat), Some(1000 - 600 + 170));
        assert_eq!(headroom("max\n", "600\n", stat), None);
        assert_eq!(headroom("100\n", "600\n", ""), Some(0));
    }

    #[test]
    fn the_groups_around_ours_count_too() {
        let of = |text| limits_of(text).into_iter().map(|[limit, ..]| limit).collect::<Vec<_>>();
        let root = Path::new("/sys/fs/cgroup");
        let expected = ["a/b/memory.max", "a/memory.max", "memory.max"].map(|name| root.join(name));
        assert_eq!(of("0::/a/b\n"), expected);
        assert_eq!(of("5:cpu,memory:/\n"), [root.join("memory/memory.limit_in_bytes")]);
        assert!(of("5:cpuset:/a\n").is_empty());
    }

    #[test]
    fn what_no_machine_has_is_an_error() {
        assert_eq!(zeroed(1 << 62).unwrap_err().kind(), crate::Kind::NoMemory);
        assert_eq!(room_for::<u64>("a list", 1 << 60).unwrap_err().kind(), crate::Kind::NoMemory);
        assert_eq!(zeroed(5).unwrap(), [0; 5]);
    }

    /// A length that the compiler knows is what it would make a `calloc` of.
    #[test]
    fn the_pages_of_a_buffer_are_there() {
        // SAFETY: asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
        let buffer = zeroed(4 << 20).unwrap();
        let start = buffer.as_ptr().align_offset(page);
        let pages = (buffer.len() - start) / page;
        let mut there = vec![0_u8; pages];
        let place = buffer[start..].as_ptr().cast_mut().cast();
        // SAFETY: the range lies within the buffer and begins at a page; there is a byte for each page of it.
        assert_eq!(unsafe { libc::mincore(place, pages * page, there.as_mut_ptr()) }, 0);
        assert_eq!(there.iter().filter(|&&page| page & 1 == 1).count(), pages);
    }
}
