"""Tests of memory that is held between runs."""

from __future__ import annotations

from pathlib import Path

import pytest

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
