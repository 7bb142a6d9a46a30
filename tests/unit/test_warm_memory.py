"""Tests of memory that is held between runs, and of what may take it: DAMON's schemes and module, a balloon."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import tempfile
from pathlib import Path

import pytest

from fslab.machine.advice import advise
from fslab.system import memory, warm_memory
from fslab.system.warm_memory import WarmMemory

MIB = 1 << 20


def resident_bytes() -> int:
    """Return the anonymous memory of this process that is in use."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024


def huge_kib() -> int:
    """Return the anonymous memory of this process in huge pages."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("AnonHugePages")).split()[1])


def test_what_is_held_is_in_use_until_it_is_released() -> None:
    before, held = resident_bytes(), WarmMemory()
    held.hold(32 * MIB)
    held.hold(64 * MIB)
    assert held.held_bytes == 64 * MIB
    assert resident_bytes() - before >= 60 * MIB
    assert held.release() == 64 * MIB
    assert resident_bytes() - before <= 8 * MIB
    assert held.release() == 0


def test_small_and_huge_pages_are_held_apart() -> None:
    held, before = WarmMemory(), huge_kib()
    held.hold(6 * MIB, huge=False)
    assert huge_kib() == before
    held.hold(4 * MIB)
    held.hold(2 * MIB)
    assert held.held_bytes == 10 * MIB
    assert held.release() == 10 * MIB
    assert held.held_bytes == 0


def test_a_quarter_of_the_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 16 * MIB)
    held = WarmMemory()
    held.hold(64 * MIB)
    assert held.held_bytes == 4 * MIB
    held.release()


@pytest.mark.parametrize(("bits", "reported"), [("0" * 64, False), ("011001" + "0" * 58, True), ("", False)])
def test_a_balloon_reports_free_pages_if_it_agreed_to(tmp_path: Path, bits: str, reported: bool) -> None:
    features = tmp_path / "bus/virtio/drivers/virtio_balloon/virtio3/features"
    features.parent.mkdir(parents=True)
    features.write_text(f"{bits}\n")
    assert warm_memory.is_reported(tmp_path) is reported


def test_without_a_balloon_no_memory_is_reported(tmp_path: Path) -> None:
    assert not warm_memory.is_reported(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees which pages are mapped")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_the_cpu_that_writes_to_tmpfs_gets_what_was_held() -> None:
    """Without the right CPU, none of the pages: then what a run writes to may be memory that the host took back."""
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        found = [_share_from_held(max(allowed)) for _ in range(5)]
        assert os.sched_getaffinity(0) == {min(allowed)}
    finally:
        os.sched_setaffinity(0, allowed)
    assert max(found) > 0.1, found  # other processes on that CPU take some, beside load most


def _share_from_held(cpu: int) -> float:
    """Return the share of the pages of a new file in tmpfs, written on ``cpu``, that were held before."""
    held = WarmMemory()
    held.hold(64 * MIB, huge=False)
    known = {frame for each in held._held[False] for frame in _frames(each)}
    held.release(cpu)
    here = os.sched_getaffinity(0)
    with tempfile.TemporaryFile(dir=memory.SHARED) as file:
        os.sched_setaffinity(0, {cpu})
        try:
            file.write(bytes(32 * MIB))
            file.flush()
        finally:
            os.sched_setaffinity(0, here)
        with mmap.mmap(file.fileno(), 0) as mapped:
            frames = _frames(mapped)
    return len(known & frames) / len(frames)


def _frames(mapped: mmap.mmap) -> set[int]:
    """Return the frame numbers of mapped pages (pagemap.rst). Root sees them, others only zeros."""
    for at in range(0, len(mapped), mmap.PAGESIZE):
        mapped[at]
    buffer = ctypes.c_char.from_buffer(mapped)
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        pagemap.seek(ctypes.addressof(buffer) // mmap.PAGESIZE * 8)
        entries = pagemap.read(len(mapped) // mmap.PAGESIZE * 8)
    del buffer  # a mapping that is referred to cannot be closed
    return {entry & (1 << 55) - 1 for (entry,) in struct.iter_unpack("Q", entries)}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def scheme(number: int, **changed: str) -> dict[str, str]:
    """Return the files of one scheme that evicts what was not accessed for ``number`` minutes."""
    context = f"{number}/contexts/0"
    values = {"state": "on", "operations": "paddr", "action": "pageout", "min": "12", **changed}
    files = {
        "nr_kdamonds": "1",
        f"{number}/state": values["state"],
        f"{context}/operations": values["operations"],
        f"{context}/monitoring_attrs/intervals/aggr_us": str(number * 5_000_000),
        f"{context}/schemes/0/action": values["action"],
        f"{context}/schemes/0/access_pattern/age/min": values["min"],
    }
    return {f"kernel/mm/damon/admin/kdamonds/{name}": text for name, text in files.items()}


def module(enabled: str) -> dict[str, str]:
    parameters = "module/damon_reclaim/parameters"
    return {f"{parameters}/enabled": enabled, f"{parameters}/min_age": "30000000"}


@pytest.mark.parametrize(
    ("files", "age_s"),
    [
        ({}, 0),
        (scheme(1), 60),
        (scheme(3) | scheme(2), 120),
        (scheme(1, state="off"), 0),
        (scheme(1, operations="vaddr"), 0),
        (scheme(1, action="stat"), 0),
        (scheme(1, min="?"), None),
        (module("Y"), 30),
        (module("N"), 0),
        (scheme(1) | module("Y"), 30),
    ],
)
def test_the_age_at_which_pages_are_evicted(
    tmp_path: Path, files: dict[str, str], age_s: float | None
) -> None:
    write(tmp_path, files)
    assert warm_memory.eviction_age_s(tmp_path) == age_s


def test_it_is_unknown_to_a_user_who_may_not_read_it(tmp_path: Path) -> None:
    write(tmp_path, scheme(1))
    # Root can read any file, so it is removed.
    (tmp_path / "kernel/mm/damon/admin/kdamonds/nr_kdamonds").unlink()
    assert warm_memory.eviction_age_s(tmp_path) is None


def test_the_module_is_unknown_to_a_user_who_may_not_read_it(tmp_path: Path) -> None:
    write(tmp_path, module("Y"))
    (tmp_path / "module/damon_reclaim/parameters/enabled").unlink()
    assert warm_memory.eviction_age_s(tmp_path) is None


def test_advice_says_after_how_many_seconds() -> None:
    assert "for 60 s (DAMON)" in advise({"proactive_reclaim_s": 60.0})[0].what
    assert advise({"proactive_reclaim_s": 0.0}) == advise({"proactive_reclaim_s": None}) == []
