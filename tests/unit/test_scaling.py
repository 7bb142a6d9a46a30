"""Tests of scaling workloads: amounts change in proportion, in units that tools accept, not below their minimum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fslab import scaling
from fslab.applications import REGISTRY as APPLICATIONS
from fslab.cell import Scalar
from fslab.units import parse_size
from fslab.workloads import REGISTRY as WORKLOADS

MIB = 1 << 20


@pytest.mark.parametrize(
    ("written", "factor", "least", "unit", "value"),
    [
        ("2g", 0.5, 1, 1, "1g"),
        ("512M", 0.05, 1, 1, "26m"),  # 25.6 MiB
        ("64m", 0.1, 1, 1, "6552k"),  # 6.4 MiB = 1638.4 pages of 4 KiB: 1638
        ("1g", 0.05, 1, 3 * MIB, "54m"),  # 51.2 MiB, in multiples of 3 MiB
        ("1g", 0.01, 1, MIB, "11m"),  # 10.24 MiB, in whole MiB
        ("1g", 0.01, 1, 64 << 10, "10496k"),  # 163.84 × 64 KiB: 164
        ("1g", 0.001, 16 * MIB, 1, "16m"),
        ("8m", 0.001, 16 * MIB, 1, "8m"),  # already below the minimum: unchanged
        ("64g", 2, 1, 1, "128g"),
    ],
)
def test_sizes(written: str, factor: float, least: int, unit: int, value: str) -> None:
    assert scaling.size(written, factor, least_bytes=least, unit_bytes=unit).value == value


def test_counts_and_times() -> None:
    assert scaling.count(102_400, 0.05) == scaling.ScaledAmount(written=102_400, value=5120, share=0.05)
    assert scaling.count(102_400, 0.001, least=1024, unit=1024).value == 1024
    assert scaling.count(50, 0.001, least=100).value == 50
    assert scaling.duration("30s", 0.05) == scaling.ScaledAmount(written="30s", value="1500ms", share=0.05)
    assert scaling.duration("1m", 0.5).value == "30s"
    assert scaling.duration("5s", 0.05).value == "1s"
    assert scaling.duration(30, 0.1, whole_s=True).value == 3


@given(st.integers(1, 1 << 45), st.floats(1e-6, 1), st.integers(1, 1 << 30))
def test_a_size_never_falls_below_its_floor_nor_grows_much(size: int, factor: float, least: int) -> None:
    after = parse_size(str(scaling.size(size, factor, least_bytes=least).value))
    assert after >= min(least, size)
    assert after <= max(size * factor, min(least, size)) + MIB


# A tool, its parameters at full size, and those that change at a twentieth.
FULL: list[tuple[str, dict[str, Scalar], dict[str, Scalar]]] = [
    ("fio", {"rw": "randwrite", "size": "1g", "runtime": "30s"}, {"size": "51m", "runtime": "1500ms"}),
    ("fio", {"rw": "write", "size": "64m", "bs": "1m"}, {"size": "16m"}),  # not 3.2 MiB: at least 16 requests
    ("dd", {"op": "write", "bs": "64k", "count": 16_384}, {"count": 819}),
    ("sysbench", {"file-test-mode": "rndwr", "file-total-size": "1G"}, {"file-total-size": "52m", "time": 1}),
    ("shell", {"operation": "touch"}, {"files": 500}),
    (
        "crash",
        {"sequences": 400, "states": 1000},
        {"sequences": 20, "states": 50, "recoveries": 1, "repairs": 1},
    ),
    ("iozone", {"size": "1g", "record": "1m"}, {"size": "51m"}),
    ("iozone", {"size": "1m", "record": "4k"}, {"size": "1m"}),
    ("bonnie", {"files": 102_400, "dirs": 1000}, {"files": 20_480, "dirs": 200}),
    ("bonnie", {"size": "2g", "ram": "1g"}, {"size": "256m", "seeks": 410, "ram": "128m"}),
    ("bonnie", {"size": "10380m", "ram": "5190m"}, {"size": "519m", "seeks": 410, "ram": "259m"}),
    ("engine", {"operation": "meta", "files": 102_400, "dirs": 1000}, {"files": 5120, "dirs": 50}),
    ("engine", {"operation": "analyze", "scale": 1}, {"scale": 0.05}),
]


@pytest.mark.parametrize(("tool", "written", "expected"), FULL)
def test_each_tool_at_a_twentieth(tool: str, written: dict[str, Scalar], expected: dict[str, Scalar]) -> None:
    entry = WORKLOADS.get(tool)
    changes = entry.scaled(entry.parse_parameters(written), 0.05)
    assert {key: change.value for key, change in changes.items()} == expected
    assert {key: change.written for key, change in changes.items() if key in written} == {
        key: value for key, value in written.items() if key in changes
    }


def test_a_default_that_is_scaled_is_named() -> None:
    for tool in APPLICATIONS.names():
        entry = WORKLOADS.get(tool)
        changes = entry.scaled(entry.parse_parameters({}), 0.05)
        assert changes, tool
        assert None not in {change.written for change in changes.values()}, tool


@pytest.mark.parametrize(
    ("tool", "written", "key"),
    [
        ("crash", {"recoveries": 0}, "recoveries"),
        ("bonnie", {"size": "1g", "seeks": 0}, "seeks"),
        ("bonnie", {"size": "1g", "ram": "0"}, "ram"),
        ("bonnie", {"files": 102_400, "size": "0"}, "size"),
        ("recovery", {"files": 0}, "files"),
        ("recovery", {"existing": 0}, "existing"),
        ("sysbench", {"file-test-mode": "rndwr", "events": 0}, "events"),
        ("sysbench", {"file-test-mode": "rndwr", "events": 10_000, "time": 0}, "time"),
        ("fio", {"rw": "read", "size": "1g", "runtime": "0"}, "runtime"),
    ],
)
@pytest.mark.parametrize("factor", [0.05, 3.0])
def test_nothing_stays_nothing(factor: float, tool: str, written: dict[str, Scalar], key: str) -> None:
    entry = WORKLOADS.get(tool)
    assert key not in entry.scaled(entry.parse_parameters(written), factor)


@given(st.integers(256, 8192), st.floats(1e-3, 8))
def test_scaled_memory_is_at_most_half_of_the_scaled_file(size_mib: int, factor: float) -> None:
    bonnie = WORKLOADS.get("bonnie")
    for ram_mib in (1, size_mib // 2):
        written: dict[str, Scalar] = {"size": f"{size_mib}m", "ram": f"{ram_mib}m"}
        changes = bonnie.scaled(bonnie.parse_parameters(written), factor)
        scaled = written | {key: change.value for key, change in changes.items()}
        assert parse_size(bonnie.parse_parameters(scaled).ram) >= MIB


@pytest.mark.parametrize(("tool", "written", "expected"), FULL)
@pytest.mark.parametrize("factor", [1e-6, 0.003, 0.33, 3.0])
def test_each_tool_takes_what_comes_out(
    factor: float, tool: str, written: dict[str, Scalar], expected: dict[str, Scalar]
) -> None:
    assert expected
    entry = WORKLOADS.get(tool)
    parameters = entry.parse_parameters(written)
    changes = entry.scaled(parameters, factor)
    scaled = entry.parse_parameters(written | {key: change.value for key, change in changes.items()})
    if factor < 1:
        assert entry.space_bytes(scaled) <= entry.space_bytes(parameters)
    else:
        assert entry.space_bytes(scaled) > entry.space_bytes(parameters)
