//! Available memory, and allocations that return an error before the system runs out of memory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Divisor of the share of available memory that is left to the rest of the system.
const LEFT: u64 = 16;
/// Growth of a list in bytes from which the available memory is checked. For less, the check would cost more than the
/// allocation.
const LARGE: u64 = 1 << 20;

/// Return the memory in bytes that the process may still allocate: the minimum of `MemAvailable` and of the remaining
/// memory of each control group that contains the process, less a sixteenth. Returns `None` if the kernel reports
/// neither.
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

/// Return an error of the kind `no_memory` if fewer than `bytes` bytes are available. `what` is the purpose, for the
/// message.
pub fn need(what: &str, bytes: u64) -> Result<()> {
    match free() {
        Some(free) if bytes > free => Err(too_much(what, bytes, Some(free))),
        _ => Ok(()),
    }
}

/// Return a buffer of `length` zero bytes whose pages are already allocated, so that no access causes a page fault
/// later.
pub fn zeroed(length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| too_much("a buffer", length as u64, free()))?;
    // Without this, the compiler replaces both calls by `calloc`, whose pages are only allocated on first access.
    let mut bytes = std::hint::black_box(bytes);
    bytes.resize(length, 0);
    Ok(bytes)
}

/// Return an empty list with capacity for `count` elements, or an error of the kind `no_memory` that names its purpose
/// `what`.
pub fn room_for<T>(what: &str, count: u64) -> Result<Vec<T>> {
    let bytes = count.saturating_mul(size_of::<T>() as u64);
    need(what, bytes)?;
    let mut list = Vec::new();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    list.try_reserve_exact(count).map_err(|_| too_much(what, bytes, free()))?;
    Ok(list)
}

/// Reserve capacity for `more` elements in a growing list, or return an error of the kind `no_memory` that names the
/// list.
#[inline]
pub fn grow<T>(what: &str, list: &mut Vec<T>, more: usize) -> Result<()> {
    if list.capacity() - list.len() >= more { Ok(()) } else { make_room(what, list, more) }
}

/// Double the capacity at least, like `Vec::push`. For a large list, realloc(3) of glibc moves the pages with mremap(2)
/// and copies nothing.
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

/// Return the files with limit, usage and statistics of each memory control group, from that of the process up to the
/// root, for cgroup v1 and v2.
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

/// Return the bytes that a control group may still use, or `None` if it has no limit. Cached file pages count as
/// available, because the kernel can reclaim them.
fn headroom(limit: &str, used: &str, stat: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    let used: u64 = used.trim().parse().ok()?;
    // In version 1, only these include the groups below, as the usage does.
    let prefix = if stat.contains("total_inactive_file") { "total_" } else { "" };
    let names = [format!("{prefix}inactive_file"), format!("{prefix}active_file")];
    let cached = stat.lines().filter_map(|line| line.split_once(' '));
    let cached = cached.filter(|(name, _)| names.iter().any(|known| known == name));
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
        let first = "inactive_file 1\nactive_file 2\ntotal_inactive_file 150\ntotal_active_file 20\n";
        assert_eq!(headroom("1000\n", "600\n", first), Some(1000 - 600 + 170));
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

    /// Use a constant length, because the compiler could replace allocation and zeroing by `calloc` there.
    #[test]
    fn the_pages_of_a_buffer_are_there() {
        // SAFETY: the call only returns a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
        let buffer = zeroed(4 << 20).unwrap();
        let start = buffer.as_ptr().align_offset(page);
        let pages = (buffer.len() - start) / page;
        let mut there = vec![0_u8; pages];
        let place = buffer[start..].as_ptr().cast_mut().cast();
        // SAFETY: the range lies within the buffer and starts at a page boundary; `there` has one byte per page.
        assert_eq!(unsafe { libc::mincore(place, pages * page, there.as_mut_ptr()) }, 0);
        assert_eq!(there.iter().filter(|&&page| page & 1 == 1).count(), pages);
    }
}
