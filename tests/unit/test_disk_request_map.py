"""Tests of the map of a run's requests: regions, intervals, distances and the journal, from logs made by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from fslab.analysis import disk_request_map
from fslab.analysis.disk_request_map import INTERVALS, MOST_REGIONS, Ranges, RequestMap
from fslab.trial_record import Value
from fslab.units import Unit

MIB = 1 << 20
KIB4 = 4096


def log(*rows: tuple[str, int, int], each_ns: int = 1_000_000) -> pl.DataFrame:
    """Return a log of (operation, offset, length), one request per ``each_ns``, each done when the next arrives."""
    made: list[dict[str, Any]] = [
        {
            "id": number + 1, "op": op, "offset": None if op == "mark" else offset, "length": length,
            "arrived_ns": 500 + number * each_ns, "done_ns": 500 + (number + 1) * each_ns,
        }
        for number, (op, offset, length) in enumerate(rows)
    ]  # fmt: skip
    numbers = dict.fromkeys(("id", "offset", "arrived_ns", "done_ns"), pl.UInt64)
    return pl.DataFrame(made, schema={"op": pl.String, "length": pl.UInt32, **numbers})


def mapped(rows: pl.DataFrame, journal: Ranges = (), rate: float = 1.0) -> RequestMap | None:
    requests = disk_request_map.requests_of(rows, journal)
    return None if requests is None else disk_request_map.map_of(requests, rate)


def figures(logs: list[pl.DataFrame], journals: list[Ranges], rate: float = 1.0) -> dict[str, Value]:
    found = (disk_request_map.requests_of(*each) for each in zip(logs, journals, strict=True))
    return disk_request_map.figures([each for each in found if each is not None], rate)


def test_only_the_touched_parts_of_the_disk_have_a_region() -> None:
    far = 1 << 40
    found = mapped(log(("write", 0, KIB4), ("write", 3 * MIB, KIB4), ("read", far, 2 * KIB4)))
    assert found is not None
    assert (found.region_bytes, found.regions) == (MIB, (0, 3 * MIB, far))
    assert found.seconds == pytest.approx(0.003)
    third = INTERVALS // 3
    assert sorted(found.cells) == [
        ("read", 2 * third, 2, 2 * KIB4),
        ("write", 0, 0, KIB4),
        ("write", third, 1, KIB4),
    ]


def test_times_are_those_of_a_clock_on_the_wall() -> None:
    """The log has the drive's time. At a speed of 0.35, it advances by 0.35 s in each second."""
    rows = log(("write", 0, KIB4), ("write", KIB4, KIB4))
    found = mapped(rows, rate=0.5)
    assert found is not None
    assert found.seconds == pytest.approx(0.004)
    assert found.cells == getattr(mapped(rows), "cells", None)
    assert figures([rows], [()], 0.5)["disk_gap_p50"].value == pytest.approx(2_000_000)


def test_regions_grow_until_they_are_few_and_no_byte_is_lost() -> None:
    rows = [("write", number * MIB, KIB4) for number in range(10 * MOST_REGIONS)]
    found = mapped(log(*rows))
    assert found is not None
    assert found.region_bytes == 16 * MIB
    assert len(found.regions) == 10 * MOST_REGIONS // 16
    assert sum(size for *_, size in found.cells) == len(rows) * KIB4


def test_the_distance_is_that_from_the_end_of_the_request_before() -> None:
    found = mapped(
        log(("read", 0, KIB4), ("read", KIB4, KIB4), ("read", MIB + 2 * KIB4, KIB4), ("write", 0, KIB4))
    )
    assert found is not None
    # Backwards from 1 MiB + 12 KiB to 0: at least 1 MiB.
    assert found.distances == {"read": {0: 1, MIB: 1}, "write": {MIB: 1}}


def test_requests_count_in_the_order_of_their_arrival() -> None:
    ordered = log(*(("write", number * KIB4, KIB4) for number in range(10)))
    as_done = ordered.sample(fraction=1, shuffle=True, seed=3)
    assert figures([as_done], [()])["disk_sequential"].value == 100.0
    assert mapped(as_done) == mapped(ordered)


def test_writes_to_the_journal_are_told_apart_and_reads_of_it_are_not() -> None:
    rows = log(("write", 8 * MIB, KIB4), ("write", 0, 2 * KIB4), ("read", 8 * MIB, KIB4))
    found = mapped(rows, [(8 * MIB, 9 * MIB)])
    assert found is not None
    assert {(kind, size) for kind, _, _, size in found.cells} == {
        ("journal", KIB4),
        ("write", 2 * KIB4),
        ("read", KIB4),
    }
    assert figures([rows], [[(8 * MIB, 9 * MIB)]])["disk_journal_bytes"].value == KIB4
    assert "disk_journal_bytes" not in figures([rows], [()])


def test_figures_are_of_all_disks_and_no_distance_is_between_two() -> None:
    one = log(("write", 0, KIB4), ("write", KIB4, KIB4))
    two = log(("write", 64 * MIB, KIB4), ("write", 65 * MIB, KIB4), each_ns=3_000_000)
    found = figures([one, two], [(), ()])
    assert found["disk_sequential"].value == 50.0
    assert found["disk_seek_p50"].value == pytest.approx((MIB - KIB4) / 2)
    assert found["disk_seek_p50"].unit is Unit.BYTES
    assert found["disk_gap_p50"].value == pytest.approx(2_000_000)


@pytest.mark.parametrize("rows", [(), (("flush", 0, 0),), (("mark", 0, 0), ("flush", 0, 0))])
def test_a_log_without_requests_has_no_map(rows: tuple[tuple[str, int, int], ...]) -> None:
    assert mapped(log(*rows)) is None
    assert figures([log(*rows)], [()]) == {}


def test_one_request_has_a_map_and_no_distance() -> None:
    found = mapped(log(("discard", MIB, 8 * MIB)))
    assert found is not None
    assert found.cells == (("discard", 0, 0, 8 * MIB),)
    assert found.distances == {}
    assert figures([log(("discard", MIB, 8 * MIB))], [()]) == {}


def test_a_stored_map_is_read_again() -> None:
    maps = [mapped(log(("write", 0, KIB4), ("read", 5 * MIB, KIB4)))] * 2
    known = [each for each in maps if each is not None]
    assert disk_request_map.read(disk_request_map.stored(known)) == tuple(known)


DISK = '{"version": 1, "disks": [{"seconds": 1, "region_bytes": 1, "regions": [0], "distances": {}, "cells": [%s]}]}'


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "5", '{"version": 2, "disks": []}', '{"version": 1, "disks": [5]}',
        DISK % '["read", 0, 7, 1]', DISK % '["<b>", 0, 0, 1]', DISK % '["read", -1, 0, 1]',
        DISK % '["read", 60, 0, 1]', DISK % f'["read", 0, 0, {10**30}]', "[" * 100_000,
        DISK.replace('"seconds": 1', '"seconds": NaN') % "", DISK.replace('"seconds": 1', '"seconds": 1e999') % "",
        DISK.replace("[0]", "[1e999]") % "", DISK.replace("[0]", "[]") % "", DISK.replace("[0]", f"{[0] * 33}") % "",
        DISK.replace('"distances": {}', '"distances": {"read": {"0": 0}}') % "",
        DISK.replace('"distances": {}', '"distances": {"read": {"3": 1}}') % "",
        DISK.replace('"distances": {}', f'"distances": {{"read": {{"{1 << 99}": 1}}}}') % "",
        DISK.replace('"distances": {}', '"distances": {"<i>": {"0": 1}}') % "",
    ],
)  # fmt: skip
def test_text_of_another_kind_is_not_a_map(text: str) -> None:
    assert disk_request_map.read(text) == ()
