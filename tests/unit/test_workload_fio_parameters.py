"""Tests of the parameters of the workload ``fio``: their consequences, and the messages about mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fslab.workloads import REGISTRY, Job
from fslab.workloads._fio_options import ALIASES, KNOWN, LEFT_OUT, ORDER, REFUSED
from fslab.workloads._fio_parameters import FioParameters

FIO = REGISTRY.get("fio")
LEAST = {"rw": "read", "size": "1g"}


def mistakes(**raw: Any) -> dict[str, str]:
    """Return the mistakes that fslab finds, by key."""
    with pytest.raises(ValidationError) as caught:
        FioParameters.model_validate(raw)
    return {str(found["loc"][0]): found["msg"] for found in caught.value.errors()}


@pytest.mark.parametrize(
    ("rw", "reads", "writes", "random", "in_place", "laid_out"),
    [
        ("read", True, False, False, False, True),
        ("randread", True, False, True, False, True),
        ("write", False, True, False, False, False),
        ("randwrite", False, True, True, True, True),
        ("rw", True, True, False, True, True),
        ("randrw", True, True, True, True, True),
        ("write:64k", False, True, False, False, False),
    ],
)
def test_what_a_mode_implies(
    rw: str, reads: bool, writes: bool, random: bool, in_place: bool, laid_out: bool
) -> None:
    job = FioParameters(rw=rw, size="1g")
    assert (job.reads, job.writes, job.one.random) == (reads, writes, random)
    assert (job.in_place, job.laid_out) == (in_place, laid_out)


@pytest.mark.parametrize(
    ("raw", "fact", "value"),
    [
        ({"rw": "write", "overwrite": True}, "laid_out", True),
        ({"rw": "randwrite", "overwrite": False}, "laid_out", False),
        ({"direct": True}, "engine", "libaio"),
        ({}, "engine", "psync"),
        ({"direct": True, "ioengine": "io_uring"}, "engine", "io_uring"),
        *(({"rw": "write", **raw}, "final_fsync", ends) for raw, ends in (
            ({}, True), ({"direct": True}, False), ({"fsync": 1}, True), ({"fdatasync": 8}, True),
            ({"fsync": 1, "direct": True}, False), ({"end_fsync": False}, False), ({"rw": "randread"}, False))),
        ({"runtime": "2s"}, "timed", True),
        ({"runtime": "2s", "time_based": False}, "timed", False),
        ({}, "timed", False),
        # Numbers of a study become text.
        ({"size": 1048576}, "size", "1048576"), ({"bs": 4096}, "bs", "4096"), ({"runtime": 5}, "runtime", "5"),
        *(({"runtime": written}, "runtime", passed) for written, passed in (
            ("1.5", "1500ms"), ("1h30m", "5400000ms"), ("0.25s", "250ms"), ("10s", "10s"))),  # fio cuts fractions
        ({"size": 1048576}, "total_bytes", 1048576),
        ({"size": "64m", "numjobs": 3}, "total_bytes", 3 << 26),
        ({"filename": "a", "numjobs": 4}, "total_bytes", 1 << 30),
        ({"norandommap": True, "rate_iops": 500, "bssplit": "4k/50:64k/50"}, "others",
         {"norandommap": "1", "rate_iops": "500", "bssplit": "4k/50:64k/50"}),
        ({"random_distribution": "zipf:1.2", "latency_percentile": 99.9, "io_size": "1.5MiB"}, "others",
         {"random_distribution": "zipf:1.2", "latency_percentile": "99.9", "io_size": "1536k"}),
        ({"bs": "64k", "io_size": "4k"}, "others", {"io_size": "4k"}),  # fio rounds it up to one request
        ({"iodepth": 32, "direct": True}, "iodepth", 32),
        ({"iodepth": 32, "ioengine": "io_uring"}, "iodepth", 32),
    ],
)  # fmt: skip
def test_what_follows_from_the_keys(raw: dict[str, Any], fact: str, value: object) -> None:
    assert getattr(FioParameters.model_validate({**LEAST, **raw}), fact) == value


def test_all_mistakes_are_found_at_once() -> None:
    found = mistakes(rw="raed", size="64MiX", bs="4kx", iodept=3, filename="/dev/sda", direct="perhaps")
    assert set(found) == {"rw", "size", "bs", "iodept", "filename", "direct"}


def test_missing_keys_are_found_with_wrong_ones() -> None:
    assert set(mistakes(iodept=3)) == {"rw", "size", "iodept"}


def test_keys_that_place_files_or_write_logs_are_left_out_with_a_notice() -> None:
    parameters = FIO.parse_parameters(
        {**LEAST, "directory": "/srv", "write_bw_log": "x", "group_reporting": True}
    )
    job = Job(directory=Path("/d"), scratch=Path("/s"), seed=1)
    assert not [word for word in FIO.commands(parameters, job).run if "srv" in word or word.endswith("=x")]
    assert FIO.notices(parameters) == ("left out: directory, write_bw_log, group_reporting",)


@pytest.mark.parametrize(
    ("key", "value"),
    [("ramp_time", "2"), ("filesize", "1m"), ("randrepeat", "1"), ("randseed", "5"), ("invalidate", "0"),
     ("pre_read", "1"), ("ss", None), ("filename", "data"), ("steadystate", "iops:5%")],
)  # fmt: skip
def test_a_job_and_a_job_file_have_the_same_options(key: str, value: str | None) -> None:
    if value is None:
        assert mistakes(**LEAST, **{key: "x"}) == {key: f"write it as '{ALIASES[key]}'"}
        return
    alone = FIO.parse_parameters({**LEAST, key: value})
    file = {"file": "x.fio", "file_text": f"[a]\nsize=1g\n{key}={value}\n"}
    form = FIO.of(file)
    job = Job(directory=Path("/d"), scratch=Path("/s"), seed=1)
    assert f"--{key}={value}" in FIO.commands(alone, job).run
    assert f"{key}={value}" in form.commands(form.parse_parameters(file), job).inputs["jobs.fio"]


@pytest.mark.parametrize(
    ("written", "told"), [("64MiB", "64m"), ("1.5m", "1536k"), ("64kb", "64k"), (3000, "3000"), ("2G", "2G")]
)
def test_fio_is_told_sizes_as_it_reads_them(written: str | int, told: str) -> None:
    parameters = FIO.parse_parameters({"rw": "write", "size": written, "bs": "8KiB,0.5k", "io_size": "1MiB"})
    argv = FIO.commands(parameters, Job(directory=Path("/d"), scratch=Path("/s"), seed=1)).run
    assert {f"--size={told}", "--bs=8k,512", "--io_size=1m"} <= set(argv)


def test_lists_of_names_do_not_contradict_each_other() -> None:
    assert not KNOWN & set(REFUSED)
    assert not KNOWN & set(ALIASES)
    assert not (LEFT_OUT | ORDER) & (KNOWN | set(REFUSED) | set(ALIASES))
    assert set(ALIASES.values()) <= KNOWN | ORDER
    assert set(FioParameters.model_fields) - {"file", "scale"} <= KNOWN
