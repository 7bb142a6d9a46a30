"""Tests of the workload ``dd``, with output of dd of coreutils 9.1."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read

from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

GOLDEN = Path(__file__).parents[1] / "golden/coreutils-9.1"
DD = REGISTRY.get("dd")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)


def reading(stderr: str, **raw: Any) -> Reading:
    return read(DD, DD.parse_parameters(raw), ToolOutput(stdout="", stderr=stderr, duration_s=1.0))


def recorded(name: str) -> str:
    return (GOLDEN / f"{name}.stderr").read_text()


def test_a_write() -> None:
    found = reading(recorded("write-1m"), op="write", bs="1M", count=512)
    # 536870912 bytes in 1.76451 s; dd reports 304 MB/s.
    assert found.metrics == {"write_bandwidth": pytest.approx(304260623, rel=1e-8)}
    assert (found.read_bytes, found.written_bytes, found.measured_s) == (0, 536870912, 1.76451)
    assert not found.direct
    assert (found.asked_s, found.working_set_bytes, found.flushed) == (None, 536870912, True)


def test_a_direct_read() -> None:
    found = reading(recorded("read-64k-direct"), op="read", bs="64k", count=8192, iflag="direct")
    # 536870912 bytes in 0.544166 s
    assert found.metrics == {"read_bandwidth": pytest.approx(986594003, rel=1e-8)}
    assert (found.read_bytes, found.written_bytes) == (536870912, 0)
    assert found.direct


def test_whether_it_was_flushed() -> None:
    def short(**more: Any) -> Reading:
        return reading(recorded("write-short"), op="write", bs="4k", count=10, **more)

    assert short().measured_s == 0.00105357
    assert short(conv="none").flushed is False
    assert short(conv="none", oflag="dsync").flushed is True


def test_a_small_count_is_printed_without_brackets() -> None:
    text = "500+0 records in\n500+0 records out\n500 bytes copied, 0.000421449 s, 1.2 MB/s\n"
    assert reading(text, op="write", bs=1, count=500).written_bytes == 500


def test_command_of_a_write() -> None:
    parameters = DD.parse_parameters({"op": "write", "bs": "64k", "count": 16, "oflag": "direct"})
    commands = DD.commands(parameters, JOB)
    assert commands.prepare == ()
    assert " ".join(commands.run) == (
        "dd if=/dev/zero of=/mnt/x/fslab.dd bs=64K count=16 oflag=direct conv=fsync"
    )
    assert commands.cleanup == (("rm", "-f", "/mnt/x/fslab.dd"),)


def test_a_write_in_slices_fills_blocks_whose_read_was_interrupted() -> None:
    parameters = DD.parse_parameters({"op": "write", "count": 16})
    assert "iflag=fullblock" in DD.commands(parameters, replace(JOB, turns=2)).run


def test_a_write_without_fsync_must_be_asked_for() -> None:
    commands = DD.commands(DD.parse_parameters({"op": "write", "count": 16, "conv": "none"}), JOB)
    assert " ".join(commands.run) == "dd if=/dev/zero of=/mnt/x/fslab.dd bs=1M count=16"


def test_commands_of_a_read() -> None:
    commands = DD.commands(DD.parse_parameters({"op": "read", "bs": "4k", "count": 300}), JOB)
    assert [" ".join(argv) for argv in commands.prepare] == [
        "dd if=/dev/zero of=/mnt/x/fslab.dd bs=1M iflag=count_bytes count=1228800 conv=fsync"
    ]
    assert " ".join(commands.run) == "dd if=/mnt/x/fslab.dd of=/dev/null bs=4K count=300"


def test_estimates() -> None:
    read = DD.parse_parameters({"op": "read", "bs": "1M", "count": 100})
    assert DD.space_bytes(read) == 104857600
    assert DD.expected_s(read) == pytest.approx(2 * 104857600 / 200e6)
