"""Tests of the detection of dirty pages after direct writes. Its counter includes pages of other processes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from fslab.features import _direct


def told(monkeypatch: pytest.MonkeyPatch, *, dirty: bool, others: Callable[[], int]) -> bool:
    """Return the result if each try counts its own pages (if ``dirty``) and those of other processes (``others``)."""
    clock = iter(range(10_000))
    monkeypatch.setattr("time.monotonic", lambda: next(clock) / 100)
    monkeypatch.setattr(_direct, "_dirtied", lambda *_: others() + (_direct.DIRTY_PAGES if dirty else 0))
    monkeypatch.setattr(_direct, "_others", lambda _: others())
    return _direct._dirties(0, 4096)


@pytest.mark.parametrize("dirty", [False, True])
def test_nobody_else_writes(dirty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, dirty=dirty, others=lambda: 0) is dirty


@pytest.mark.parametrize("dirty", [False, True])
def test_others_write_for_long_and_then_rest(dirty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes can write for longer than a fixed number of tries, which would then report dirty pages."""
    loads = iter([5000] * 60)
    assert told(monkeypatch, dirty=dirty, others=lambda: next(loads, 0)) is dirty


@pytest.mark.parametrize("dirty", [False, True])
def test_somebody_writes_all_the_time(dirty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, dirty=dirty, others=lambda: 40) is dirty


def test_bursts_are_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(200):
        chance = Random(seed)
        assert not told(monkeypatch, dirty=False, others=lambda: chance.choice((0, 5000)))  # noqa: B023
