"""Tests of fio job files: which jobs are read from them, and which options are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fslab.workloads import REGISTRY, Job
from fslab.workloads._fio_file_parameters import jobs_of

FIO = REGISTRY.get("fio").of({"file": "x.fio"})
JOB = Job(directory=Path("/mnt/a:b"), scratch=Path("/s"), seed=7)
TWO = """\
; two jobs
[global]
bs=4k   # of both
direct=1
size=64m
runtime=2
time_based

[Reader 1]
rw=randread
[writer]
rw=write
numjobs=2
stonewall
"""


def parsed(text: str) -> Any:
    return FIO.parse_parameters({"file": "x.fio", "file_text": text})


def test_the_jobs_of_a_file() -> None:
    reader, writer = jobs_of(TWO)
    assert (reader.label, reader.phase, reader.directions, reader.random, reader.direct) == (
        "reader_1", 0, ("read",), True, True,
    )  # fmt: skip
    assert (writer.label, writer.phase, writer.directions, writer.bytes) == (
        "writer",
        1,
        ("write",),
        128 << 20,
    )
    assert reader.options["bs"] == "4k"
    assert FIO.space_bytes(parsed(TWO)) == 192 << 20
    assert FIO.expected_s(parsed(TWO)) > 4


def test_metrics_by_job_and_in_total() -> None:
    names = [metric.name for metric in FIO.metrics(parsed(TWO))]
    assert {"reader_1_read_iops", "writer_write_clat_p99", "total_read_iops", "total_write_bandwidth"} <= set(
        names
    )
    assert FIO.headline(parsed(TWO)) == ("total_read_bandwidth", "total_write_bandwidth")
    assert FIO.headline(parsed("[a]\nrw=randread\nsize=1m\n")) == ("read_iops",)


def test_fio_gets_what_was_understood_and_the_directory() -> None:
    commands = FIO.commands(parsed(TWO), JOB)
    text = commands.inputs["jobs.fio"]
    assert text.splitlines()[:2] == ["[global]", "directory=/mnt/a\\:b"]
    assert "[Reader 1]\nnew_group\nbs=4k\n" in text
    assert "time_based\n" in text
    assert "#" not in text
    assert commands.prepare[0] == ("fio", "--parse-only", "/s/jobs.fio")
    assert "create_only=1" in commands.inputs["layout.fio"]


@pytest.mark.parametrize(
    "line",
    [
        "filename=/etc/passwd", "filename=../x", "filename=a:/dev/sda", "filename=-", "directory=/", "opendir=/etc",
        "exec_prerun=reboot", "exec_postrun=reboot", "ioengine=external:/x.so", "ioengine=net", "ioengine=libblkio",
        "read_iolog=x", "write_bw_log=x", "write_iolog=x", "merge_blktrace_file=x", "cgroup=x", "uid=0",
        "filename=${HOME}", "bs=$ncpus", "bs=$pagesize';reboot;'", "description=`reboot`", "mem=mmaphuge:/x",
        "buffer_pattern='x'", "fill_device=1", "include other.fio", "include\tother.fio", "rw=trim", "rw=randtrim",
        "  exec_prerun = reboot", "EXEC_PRERUN=reboot", "filename_format=../x", "bs=4k\rexec_prerun=x",
        "bs=4k\x0bexec_prerun=reboot", "bs=4k\u2028exec_prerun=reboot", "[../x]", "[/x]", "[a] exec_prerun=x", "[.x]",
        "numjobs=5000", "numjobs=4k", "iodepth=1000000000", "verify_async=100000", "nrfiles=1m", "numjobs=\u0663",
        "numjobs=", "verify_pattern=/x", "ioscheduler=none", "aux-path=/", "zonemode=zbd", "size=20%", "kb_base=1000",
    ],
)  # fmt: skip
def test_what_reaches_outside_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        parsed(f"[a]\nsize=1m\n{line}\n")


@pytest.mark.parametrize(
    "text", ["", "rw=read\n", "[global]\nbs=4k\n", "[a]\nrw=read\n", "[a]\nsize=1m\nbsx=4k\n"]
)
def test_what_is_no_job_file_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parsed(text)


def test_a_number_that_fslab_cannot_read_is_left_to_fio() -> None:
    (job,) = parsed("[a]\nrw=write\nsize=1m\nfsync=\u00b2\n").jobs
    assert not job.syncs


@pytest.mark.parametrize(
    ("line", "flushed"),
    [("", False), ("end_fsync=1", True), ("fdatasync=4", True), ("sync=dsync", True), ("sync=none", False)],
)
def test_whether_what_a_job_writes_is_flushed(line: str, flushed: bool) -> None:
    (job,) = parsed(f"[a]\nrw=write\nsize=1m\n{line}\n").jobs
    assert job.flushed is flushed


def test_no_two_jobs_have_the_same_label() -> None:
    text = "[global]\nsize=1m\n" + "".join(f"[{name}]\n" for name in ("a_3", "a", "a", "total", "A_4", "a 4"))
    parameters = parsed(text)
    assert [job.label for job in parameters.jobs] == ["a_3", "a", "a_4", "total_4", "a_4_5", "a_4_6"]
    names = [metric.name for metric in FIO.metrics(parameters)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("bs", "sizes"),
    [
        ("8k", (8192,)), (",8k", (4096, 8192)), ("8k,", (4096, 8192)), ("8k,,16k", (4096, 8192)), ("", (4096,)),
    ],
)  # fmt: skip
def test_request_sizes_may_be_empty(bs: str, sizes: tuple[int, ...]) -> None:
    assert FIO.traits(parsed(f"[a]\nrw=rw\nsize=1m\nbs={bs}\n")).request_bytes == sizes


def test_a_request_size_that_fslab_cannot_read_is_a_mistake_in_the_study() -> None:
    """Traits are asked for while a trial runs: there it would end the campaign."""
    with pytest.raises(ValidationError, match="fourk"):
        parsed("[a]\nrw=read\nsize=1m\nbs=fourk\n")


def test_other_keys_have_no_place_beside_a_file() -> None:
    with pytest.raises(ValidationError, match="rw"):
        FIO.parse_parameters({"file": "x.fio", "file_text": TWO, "rw": "read"})
