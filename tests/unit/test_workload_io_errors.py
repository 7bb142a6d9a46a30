"""Tests of the workload ``io-errors``: which command is run, and how its output is read."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.read import read

from fslab import faults
from fslab.errors import NoSpaceError, ToolOutputError, UnsupportedError
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

IO_ERRORS = REGISTRY.get("io-errors")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=(1 << 31) + 7)
DOCUMENT: dict[str, Any] = {
    "version": 1, "filesystem": "ext4", "fault": "bit-rot-data", "hit": 16, "reported": 3, "silent": 4, "unharmed": 9,
    "reported_once": 2, "lost": 1, "writes_stopped": True, "needs_repair": False, "examples": [],
}  # fmt: skip


def reading(text: str, stderr: str = "") -> Reading:
    return read(
        IO_ERRORS, IO_ERRORS.parse_parameters({}), ToolOutput(stdout=text, stderr=stderr, duration_s=2.0)
    )


@pytest.mark.parametrize("name", faults.REGISTRY.names())
def test_each_fault_can_be_asked_for(name: str) -> None:
    commands = IO_ERRORS.commands(IO_ERRORS.parse_parameters({"fault": name}), JOB)
    (text,) = commands.inputs.values()
    assert json.loads(text) == {
        "do": "fault", "directory": "/mnt/x/work", "fault": name, "seed": 7, "scratch": "/run/s"
    }  # fmt: skip
    assert faults.REGISTRY.get(name).summary


def test_a_fault_that_is_none() -> None:
    with pytest.raises(ValidationError, match="known: bit-rot-data"):
        IO_ERRORS.parse_parameters({"fault": "smoke"})


def test_counts_and_what_became_of_the_file_system() -> None:
    found = reading(json.dumps(DOCUMENT))
    assert set(found.metrics) == {metric.name for metric in IO_ERRORS.metrics(IO_ERRORS.parse_parameters({}))}
    assert (found.metrics["silent"], found.metrics["reported"], found.metrics["unharmed"]) == (4, 3, 9)
    assert (found.metrics["writes_stopped"], found.metrics["needs_repair"]) == (1, 0)
    assert found.disk_fails
    assert found.promises_broken == ()


def test_a_fault_that_nothing_met_has_no_counts() -> None:
    missed = {**DOCUMENT, "hit": 0, "reported": 0, "silent": 0, "unharmed": 0, "reported_once": 0}
    found = reading(json.dumps(missed)).metrics
    assert (found["hit"], found["lost"]) == (0, 1)
    assert {found[name] for name in ("silent", "reported", "unharmed", "reported_once")} == {None}


def test_output_that_is_none() -> None:
    with pytest.raises(ToolOutputError, match="KeyError"):
        reading("{}")
    with pytest.raises(UnsupportedError, match="one virtual disk with a log"):
        reading("{}", stderr="fslab: /x: the virtual disk keeps no log")
    with pytest.raises(NoSpaceError):
        reading("{}", stderr="No space left on device")
