"""Tests of fio job files: which jobs are read from them, when these run, and what is refused and how."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests import fio_jobs

from fslab.errors import StudyError, ToolFailedError
from fslab.study.load import load_text
from fslab.validity.facts import Depth, Rate
from fslab.workloads import REGISTRY, Job, ToolOutput, _fio_one_job
from fslab.workloads._fio_file_reading import read_jobs
from fslab.workloads._fio_output import jobs_of

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
SSD, HDD = "directory=/mnt/ssd\n", "directory=/mnt/hdd\n"
REMEDY = re.compile(
    r"delete|give '|write |rename|paste|correct|split|did you mean|add a section|describe|name the files|set "
    r"|is not a whole number|must be at (?:most|least)|must be plain"
)


def parsed(text: str, **beside: Any) -> Any:
    return FIO.parse_parameters({"file": "x.fio", "file_text": text, **beside})


def refused(text: str, **beside: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        parsed(text, **beside)
    return [found["msg"] for found in caught.value.errors()]


@pytest.mark.parametrize("file", fio_jobs.FILES, ids=lambda file: file.stem)
def test_a_job_file_as_people_write_it_runs_or_is_refused_with_a_remedy_for_each_line(file: Path) -> None:
    shape = fio_jobs.shape(file)
    if not shape.refused:
        assert fio_jobs.workload(file).space_bytes() > 0
        return
    with pytest.raises(StudyError) as caught:
        fio_jobs.loaded(shape.study)
    said = re.findall(rf": {re.escape(file.name)}:(\d+): (.*)$", caught.value.what, re.MULTILINE)
    assert [line for line, _ in said] == shape.refused
    assert not [what for _, what in said if not REMEDY.search(what)]


def test_the_corpus_has_many_shapes() -> None:
    assert len(fio_jobs.FILES) >= 40


def test_the_jobs_of_a_file() -> None:
    reader, writer = parsed(TWO).jobs
    assert (reader.label, reader.directions, reader.random, reader.direct) == (
        "reader_1", ("read",), True, True,
    )  # fmt: skip
    assert (writer.label, writer.directions, writer.bytes) == ("writer", ("write",), 128 << 20)
    assert reader.options["bs"] == "4k"
    assert FIO.space_bytes(parsed(TWO)) == 192 << 20
    assert FIO.traits(parsed(TWO)).parallel == 2
    assert FIO.expected_s(parsed(TWO)) > 4


def test_sizes_mean_what_they_mean_to_fio() -> None:
    """fio(1), "Parameter types": KiB are 1000 bytes, kB are 1024, unless kb_base says otherwise."""
    parameters = parsed("[a]\nsize=4MiB\nbs=4KiB\nrw=write\n[b]\nsize=4MB\nbsrange=2KiB-8k\nrw=write\n")
    one, other = parameters.jobs
    assert (one.bytes, one.request_bytes, one.options["bs"]) == (4_000_000, (4000,), "4000")
    assert (other.bytes, other.options["bsrange"]) == (4 << 20, "2000-8k")
    assert "4KiB is 4000 bytes to fio" in FIO.notices(parameters)[0]
    assert parsed("[a]\nsize=4m\nrw=write\n", bsrange="4KiB-64KiB").jobs[0].options["bsrange"] == "4k-64k"
    assert "to fio, 4KiB is 4000 bytes" in refused("[a]\nsize=4m\nbs=4KiB\ndirect=1\n")[0]


@pytest.mark.parametrize(
    "line",
    [
        "size=1.5g", "bs=1.5k", "runtime=2.5", "thinktime=2.5ms", "rate_iops=0.5k", "runtime=1h30m", "size=64 MB",
        "bs=4 k", "rate=10m, 5 m", "io_size=8 k", "offset=1 g", "bssplit=4 k/50:8k/50", "runtime=300 ms",
        "startdelay=3sec", "ramp_time=1min", "thinktime=5 ms", "max_latency=2secs", "latency_target=1ms,2x",
    ],
)  # fmt: skip
def test_a_number_of_which_fio_reads_only_the_beginning_is_refused(line: str) -> None:
    """fio 3.33 reads ``rate=10 m`` as 10 bytes, ``runtime=300 ms`` as 300 s, and ``startdelay=3sec`` as 3 µs."""
    key, _, value = line.partition("=")
    (why,) = refused(f"[a]\nsize=4m\n{line}\n")
    assert f"'{value}'" in why
    assert "only the first digits" in why or "as another time" in why
    assert parsed(f"[a]\nsize=4m\n{line}\n", **{key: "4m" if "size" in key else "4"})


def test_name_in_a_section_names_the_job_and_not_its_files() -> None:
    """As in fio: ``wait_for`` means this name, files are named after the section, and a name of all jobs is none."""
    text = "[global]\nname=all\nsize=1m\n[a]\nname=4KiB fill 1.5\nrw=write\n[b]\nname=age\nwait_for=4KiB fill 1.5\n"
    parameters = parsed(text)
    assert [job.label for job in parameters.jobs] == ["4kib_fill_1_5", "age"]
    assert FIO.headline(parameters) == ("4kib_fill_1_5_write_bandwidth", "age_read_bandwidth")
    assert [job.after for job in parameters.jobs] == [None, "4KiB fill 1.5"]
    assert FIO.notices(parameters) == ("x.fio: left out: name",)
    long = parsed("".join(f"[{'x' * 150}{end}]\nsize=1m\nrw=write\n" for end in "ab"))
    assert [job.label for job in long.jobs] == ["x" * 64, f"{'x' * 64}_2"]
    assert "[a]\nnew_group\nsize=1m\nname=4KiB fill 1.5\n" in FIO.commands(parameters, JOB).inputs["jobs.fio"]
    assert FIO.space_bytes(parsed("[global]\nsize=1m\n[a]\nname=x\n[b]\nname=x\n")) == 2 << 20
    assert "no job 'a' before 'age'" in refused(text.replace("wait_for=4KiB fill 1.5", "wait_for=a"))[0]
    for name in ("../x", ".x", "a/b", "`reboot`", "x" * 300):
        assert [
            why for why in refused(f"[a]\nsize=1m\nname={name}\n") if REMEDY.search(why) or "shorten" in why
        ]


def test_each_line_with_filename_adds_files() -> None:
    """Also in the section of a job to those of all jobs: str_filename_cb in fio's options.c."""
    text = "[global]\nfilename=/dev/sdb\nsize=6m\nrw=read\n[a]\nfilename=g:h\nfilename=i\n[b]\n"
    a, b = parsed(text).jobs
    assert (a.options["filename"], b.options["filename"]) == ("dev_sdb:g:h:i", "dev_sdb")
    assert FIO.traits(parsed(text)).files == 4
    assert parsed(text, filename="f").jobs[0].options["filename"] == "f"


@pytest.mark.parametrize("text", ["[a]\nsize=0\n", "[a]\nsize=0\nfilesize=0\n", "[global]\nsize=0\n[a]\n"])
def test_a_size_of_zero_is_none(text: str) -> None:
    """fio then takes the size that the file has, and a new file has none."""
    assert "has no size: give 'size'" in refused(text)[0]
    assert "greater than zero" in refused(text, size=0)[0]
    assert parsed(text, size="1m").jobs
    assert parsed("[global]\nsize=0\n[a]\nsize=1m\n").jobs


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"[a]\n{SSD}filename=f\nrw=write\n[b]\n{HDD}filename=f\n", "f in /mnt/ssd and in /mnt/hdd"),
        (f"[a]\nfilename=g\n[b]\n{HDD}filename=f\n[c]\nfilename=f\n", "f in /mnt/hdd and in ."),
        ("[a]\ndirectory=/mnt/ssd:/mnt/hdd\nnumjobs=2\nfilename=f\n", "f in /mnt/ssd and in /mnt/hdd"),
        (f"{SSD}filename=f\n[a]\n[b]\n{HDD}filename=f\n", "f in /mnt/ssd and in /mnt/hdd"),
        (f"{SSD}filename=f\n[a]\n[b]\n{HDD}filename=g\n", None),
        (f"[a]\n{SSD}filename=f\n[b]\ndirectory=/mnt/ssd/\nfilename=f\n", None),
        (f"[a]\ndirectory=/mnt/ssd:/mnt/hdd\nfilename=f\n[b]\n{SSD}filename=f\n", None),
        (f"[a]\n{SSD}filename=g\n[b]\n{HDD}filename=f\n", None),
        (f"filename=f\n[a]\n{SSD}[b]\n{HDD}", None),
    ],
)
def test_files_of_several_directories_do_not_become_one(text: str, told: str | None) -> None:
    """fio puts a file of one name into each directory; all files of fslab are in one. A file of all jobs is one file,
    whatever the directory of a job."""
    whole = f"[global]\nsize=1m\n{text}"
    if told is None:
        assert all("directory" not in job.options for job in parsed(whole).jobs)
    else:
        assert f"{told} would be one file: rename" in refused(whole)[0]
        assert parsed(whole, filename="h").jobs
        assert parsed(whole.replace("filename=f\n", "")).jobs


def test_the_job_that_is_furthest_from_its_queue_depth_counts() -> None:
    """Not one whose engine has no queue, and not one that its options slow down."""
    queue = "size=1m\nrw=randread\nioengine=libaio\ndirect=1\niodepth"
    text = f"[a]\n{queue}=8\n[b]\n{queue}=32\n[c]\n{queue}=64\nrate_iops=9\n[d]\nsize=1m\niodepth=4\n"
    levels = [{"8": 100.0}, {"1": 50.0, "2": 50.0}, {"1": 100.0}, {"1": 100.0}]
    found = reading(text, *(report(read=(MIB, 2000), iodepth_level=each) for each in levels))
    assert found.depth == Depth(asked=32, at_least=1.5, at_most=2.0)
    assert not found.queue_in_tool
    assert FIO.notices(parsed(text)) == ("x.fio: iodepth has no effect in 'd' with psync",)
    buffered = text.replace("direct=1\n", "")
    assert reading(buffered, *(report(read=(MIB, 2000), iodepth_level=each) for each in levels)).queue_in_tool


def test_new_files_that_are_written_again_and_again() -> None:
    """Only the first pass over them allocates. A file that another job reads is made before the run."""
    once, often = report(write=(MIB, 2000)), report(write=(12 * MIB, 2000))
    assert reading("[a]\nrw=write\nsize=1m\n[b]\nrw=write\nsize=2m\nnumjobs=2\n", once, often).passes == 3
    for line in ("overwrite=1", "rw=randwrite", "filename=f\n[b]\nrw=read\nsize=1m\nfilename=f"):
        reports = [often, report(read=(MIB, 2000))][: 1 + ("[b]" in line)]
        assert reading(f"[a]\nrw=write\nsize=1m\n{line}\n", *reports).passes is None


def test_a_run_time_is_asked_for_only_if_all_jobs_have_one() -> None:
    reports = [report(read=(MIB, 2000), job_start=0), report(write=(MIB, 700), job_start=2000)]
    assert reading(TWO, *reports).asked_s == 4
    assert reading(TWO.replace("time_based", ""), *reports).asked_s is None


def test_a_delay_is_in_the_plan_once() -> None:
    text = (
        "[a]\nrw=read\nsize=1m\nstartdelay=60\n[b]\nrw=read\nsize=1m\nstartdelay=100\nruntime=5\ntime_based\n"
    )
    assert 105 < FIO.expected_s(parsed(text)) < 107
    assert 60 < FIO.expected_s(parsed(text.partition("[b]")[0])) < 62
    job = REGISTRY.get("fio").of({"rw": "read"})
    timed = job.parse_parameters({"rw": "read", "size": "1m", "runtime": "5s", "startdelay": "60"})
    assert 65 < job.expected_s(timed) < 67


@pytest.mark.parametrize(
    ("lines", "fact", "value"),
    [
        ("direct", "direct", True),  # an option without a value is on
        ("fsync=\u00b2", "syncs", False),  # left to fio
        ("bs=8k", "request_bytes", (8192,)), ("bs=,8k", "request_bytes", (4096, 8192)),
        ("bs=8k,", "request_bytes", (8192, 4096)), ("bs=8k,,16k", "request_bytes", (8192, 4096)),
        *((f"filename={name}", "file_names", {used}) for name, used in (
            ("/etc/passwd", "etc_passwd"), ("../x", ".._x"), (r"\\.\x", "._x"))),
        ("filename_format=../x", "file_names", {".._x/shared"}),
        *((line, "options", {"rw": "write", "size": "1m", **dict([line.split("=")])}) for line in (
            "startdelay=1-3", "thinktime=500usec", "max_latency=20MS", "cpus_allowed=0, 1")),
    ],
)  # fmt: skip
def test_what_an_option_makes_of_a_job(lines: str, fact: str, value: object) -> None:
    (job,) = parsed(f"[a]\nrw=write\nsize=1m\n{lines}\n").jobs
    assert getattr(job, fact) == value


@pytest.mark.parametrize(
    ("line", "flushed"),
    [("", False), ("end_fsync", True), ("end_fsync=1", True), ("fdatasync=4", True), ("fsync=50", False),
     ("fdatasync=4\nnumjobs=3", False), ("sync=dsync", True), ("sync=none", False), ("direct=1", True)],
)  # fmt: skip
def test_at_most_a_tenth_of_the_writes_may_be_left_in_memory(line: str, flushed: bool) -> None:
    (job,) = parsed(f"[a]\nrw=write\nsize=1m\n{line}\n").jobs
    assert job.flushed(100) == flushed


@pytest.mark.parametrize(
    ("line", "repeats", "zeros"),
    [("", True, False), ("scramble_buffers=1", True, False), ("refill_buffers", False, False),
     ("refill_buffers=0", True, False), ("buffer_compress_percentage=50", False, False),
     ("verify=crc32c", False, False), ("zero_buffers", False, True), ("buffer_pattern=0x00", False, True),
     ("buffer_pattern=0\nzero_buffers=0", False, True), ("buffer_pattern=0xdeadbeef\nzero_buffers", False, False),
     ("zero_buffers=0", True, False)],
)  # fmt: skip
def test_fio_writes_one_buffer_again_and_again_unless_told_otherwise(
    line: str, repeats: bool, zeros: bool
) -> None:
    found = reading(f"[a]\nrw=write\nsize=1m\n{line}\n", report(write=(MIB, 2000)))
    assert (found.repeats, found.zeros) == (repeats, zeros)
    if not line.startswith("verify"):
        assert not reading(f"[a]\nrw=read\nsize=1m\n{line}\n", report(read=(MIB, 2000))).repeats


def test_a_mix_of_100_percent_has_one_direction() -> None:
    text = "[global]\nsize=1m\nrw=randrw\n[a]\nrwmixread=100\n[b]\nrwmixwrite=100\n[c]\nrw=randread\n"
    assert [job.directions for job in parsed(text).jobs] == [("read",), ("write",), ("read",)]
    assert FIO.headline(parsed(text)) == ("total_read_iops", "b_write_iops")


def test_a_process_that_a_signal_ended_fails_the_trial_although_fio_exits_with_0() -> None:
    told = f"fio: pid=30442, got signal=9\n{json.dumps({'jobs': [report(write=(MIB, 2000))]})}"
    with pytest.raises(ToolFailedError, match="ended by signal 9"):
        jobs_of(told)


def test_a_job_that_transferred_nothing_fails_the_trial() -> None:
    """exitall with exit_what=all ends also jobs that have not begun: a headline without them would be wrong."""
    both = {"jobs": [report(write=(MIB, 2000)), {**report(), "jobname": "late"}]}
    with pytest.raises(ToolFailedError, match="job 'late' transferred nothing"):
        jobs_of(json.dumps(both))


def test_metrics_by_job_and_the_sum_of_jobs_that_run_together() -> None:
    text = "[global]\nsize=1m\n[a]\nrw=randread\n[b]\nrw=randread\n[w]\nrw=write\n[x]\nstonewall\nrw=read\n"
    parameters = parsed(text)
    names = {metric.name for metric in FIO.metrics(parameters)}
    assert {"a_read_iops", "w_write_clat_p99", "phase_1_read_iops", "x_read_bandwidth"} <= names
    assert not any(name.startswith("total") for name in names)
    assert FIO.headline(parameters) == ("phase_1_read_iops", "w_write_bandwidth", "x_read_bandwidth")
    assert FIO.headline(parsed(text.partition("[x]")[0])) == ("total_read_iops", "w_write_bandwidth")
    assert FIO.headline(parsed("[a]\nrw=randread\nsize=1m\n")) == ("read_iops",)


@pytest.mark.parametrize(
    ("line", "headline"),
    [("", ("total_write_bandwidth",)), ("bs=4k", ("total_write_bandwidth",)),
     *((line, ("a_write_bandwidth", "log_write_bandwidth")) for line in ("bs=1m", "fsync=1", "sync=dsync", "direct=1")),
     ("rw=randwrite", ("a_write_bandwidth", "log_write_iops"))],
)  # fmt: skip
def test_unlike_jobs_that_run_together_are_compared_each(line: str, headline: tuple[str, ...]) -> None:
    """A stream of 200 MB beside a log that is synced: their sum said nothing of the log."""
    assert FIO.headline(parsed(f"[a]\nrw=write\nsize=1m\n[log]\nrw=write\nsize=1m\n{line}\n")) == headline


def report(*, read: tuple[int, int] = (0, 0), write: tuple[int, int] = (0, 0), **more: Any) -> dict[str, Any]:
    """Return fio's report of a job: in each direction the bytes, and the run time in ms."""
    directions = {
        name: {"io_bytes": moved, "runtime": ms, "total_ios": moved // 4096, "iops": 1.0, "bw_bytes": 1}
        for name, (moved, ms) in (("read", read), ("write", write))
    }
    return {**directions, "error": 0, "usr_cpu": 1, "sys_cpu": 1, **more}


def reading(text: str, *reports: dict[str, Any], logs: dict[str, str] | None = None) -> Any:
    files = {"fio.json": json.dumps({"jobs": reports}), **(logs or {})}
    output = ToolOutput(stdout="", stderr="", files=files, duration_s=9)
    return FIO.read(parsed(text), output)


MIB = 1 << 20


@pytest.mark.parametrize("order", ["stonewall", "wait_for=a", "startdelay=2", "wait_for_previous=1"])
def test_jobs_that_do_not_start_together_have_no_sum_and_their_times_add_up(order: str) -> None:
    text = f"[global]\nsize=64m\nrw=write\n[a]\n[b]\n{order}\n"
    found = reading(text, report(write=(64 * MIB, 2000)), report(write=(64 * MIB, 2000)))
    assert not any(name.startswith(("total", "phase")) for name in found.metrics)
    assert found.measured_s == 4.0


@pytest.mark.parametrize(
    ("first", "second", "spans"),
    [
        ("startdelay=2", "stonewall", [(2, 6), (0, 3), (1, 6)]),
        ("", "stonewall\nstartdelay=2", [(0, 4), (6, 9), (1, 6)]),
        ("", "stonewall\nstartdelay=9", [(0, 4), (9, 12), (1, 6)]),
        ("", "stonewall", [(0, 4), (4, 7), (4, 9)]),
        ("startdelay=2", "wait_for=a", [(2, 6), (6, 9), (1, 6)]),
    ],
)
def test_a_delayed_job_holds_no_other_and_no_wall_waits_for_it(
    first: str, second: str, spans: list[tuple[float, float]]
) -> None:
    """Seen with fio 3.33: the first two jobs of the first case end after 6 s, not after 9 s."""
    text = f"[global]\nsize=1m\nrw=write\n[a]\n{first}\n[b]\n{second}\n[c]\nstartdelay=1\n"
    jobs = [report(write=(MIB, int(1000 * (end - begin)))) for begin, end in spans]
    assert _fio_one_job.spans(parsed(text).jobs, [4, 3, 5]) == spans
    assert reading(text, *jobs).measured_s == _fio_one_job.covered_s(spans)


def test_jobs_with_different_ramp_times_are_measured_at_different_times_and_have_no_sum() -> None:
    """fio reports nothing of the ramp time, in which the other job runs beside it."""
    text = "[global]\nsize=64m\nrw=randread\ntime_based\nruntime=1\n[a]\nramp_time=3\n[b]\n[c]\nwait_for=a\n"
    jobs = [report(read=(MIB, 1000))] * 3
    found = reading(text, *jobs)
    assert not any(name.startswith(("total", "phase")) for name in found.metrics)
    assert found.measured_s == 3.0, "seconds 0 to 1, 3 to 4 and 4 to 5"
    begun = reading(
        text, *(job | {"job_start": start} for job, start in zip(jobs, (0, 0, 4000), strict=True))
    )
    assert begun.measured_s == 3.0
    assert FIO.expected_s(parsed(text)) >= 5
    alike = reading(text.replace("ramp_time=3", "").replace("time_based", "ramp_time=3"), *jobs)
    assert alike.metrics["phase_1_read_bandwidth"] == 2 * MIB


def test_a_sum_has_the_time_of_its_own_direction_and_phase() -> None:
    text = "[global]\nsize=8m\n[a]\nrw=read\n[b]\nrw=read\n[slow]\nrw=write\n[later]\nstonewall\nrw=write\n"
    jobs = (
        report(read=(8 * MIB, 1000)),
        report(read=(8 * MIB, 500)),
        report(write=(8 * MIB, 10_000)),
        report(write=(8 * MIB, 4000)),
    )
    found = reading(text, *jobs)
    assert found.metrics["total_read_bandwidth"] == 16 * MIB
    assert found.measured_s == 14.0
    assert found.parts_s == {"a": 1.0, "b": 0.5, "slow": 10.0, "later": 4.0}
    begun = reading(
        text, *(job | {"job_start": start} for job, start in zip(jobs, (0, 800, 0, 10_000), strict=True))
    )
    assert begun.metrics["total_read_bandwidth"] == pytest.approx(16 * MIB / 1.3), (
        "fio says when each job began"
    )
    apart = reading(
        text, *(job | {"job_start": start} for job, start in zip(jobs, (0, 1100, 0, 10_000), strict=True))
    )
    assert apart.metrics["total_read_bandwidth"] is None, "they did not run together"


@pytest.mark.parametrize(
    ("of_a", "of_b", "what"),
    [
        ("exitall", "", "stonewall"),
        ("", "exitall\nexit_what=group", "stonewall"),
        ("exitall", "exit_what=all", "all"),
    ],
)
def test_exitall_ends_the_other_jobs_although_each_is_a_group_of_its_own(
    of_a: str, of_b: str, what: str
) -> None:
    parameters = parsed(f"[global]\nsize=1m\n[a]\n{of_a}\n[b]\n{of_b}\n")
    *_, last = parameters.jobs
    assert (last.options["exit_what"], "exitall" in last.options, last.ends_early) == (what, True, True)


def test_exitall_in_groups_of_the_file_s_own_is_refused_with_what_to_write() -> None:
    text = "[global]\nsize=1m\n[a]\nexitall\n[b]\nnew_group\n"
    with pytest.raises(ValidationError, match="add exit_what=stonewall"):
        parsed(text)
    assert parsed(text.replace("exitall\n", "exitall\nexit_what=all\n")).jobs


def test_fio_gets_what_was_understood_and_the_directory() -> None:
    commands = FIO.commands(parsed(TWO), JOB)
    text = commands.inputs["jobs.fio"]
    assert text.splitlines()[:2] == ["[global]", "directory=."]
    assert "[Reader 1]\nnew_group\nbs=4k\n" in text
    assert "time_based\n" in text
    assert "#" not in text
    assert "create_only=1" in commands.inputs["layout.fio"]


def test_each_job_has_a_log_of_its_rate_unless_its_run_is_too_short() -> None:
    text = (
        "[global]\nsize=1m\n[Reader 1]\nrw=read\n[writer]\nrw=write\nruntime=7\ntime_based\n[w2]\nrw=write\n"
    )
    commands = FIO.commands(parsed(text), JOB)
    assert commands.outputs == ("fio.json", "reader_1_bw.log", "w2_bw.log")
    sections = commands.inputs["jobs.fio"].split("new_group")
    assert [re.findall("(?m)^.*log.*$", section) for section in sections] == [
        [],
        ["write_bw_log=/s/reader_1", "log_avg_msec=200", "per_job_logs=0"],
        [],
        ["write_bw_log=/s/w2", "log_avg_msec=200", "per_job_logs=0"],
    ]
    assert "log" not in commands.inputs["layout.fio"], "the layout is not measured"
    logs = {
        "reader_1_bw.log": "200, 1, 0, 0, 0\n400, 2, 0, 0, 0\n",
        "w2_bw.log": "",
        "writer_bw.log": "200, 9, 1",
    }
    found = reading(text, report(read=(MIB, 2000)), *2 * [report(write=(MIB, 2000))], logs=logs)
    assert found.rates == (Rate(what="reader_1 bandwidth", interval_s=0.2, values=(1024.0, 2048.0)),)
    twins = parsed("[global]\nrw=write\nsize=1m\n[a b]\n[a-b]\n[b]\nname=a_b\n[bw]\n")
    logs_of_twins = FIO.commands(twins, JOB).outputs[1:]
    assert len(set(logs_of_twins)) == 4
    assert all(re.fullmatch(r"\w+_bw\.log", name) for name in logs_of_twins)
    assert refused("[a/b]\nrw=write\nsize=1m\n"), "no log lies elsewhere"
    alone = reading("[a]\nsize=1m\n", report(read=(MIB, 2000)), logs={"fio_bw.log": "200, 1, 0, 0, 0"})
    assert [rate.what for rate in alone.rates] == ["bandwidth"]


def test_lines_that_only_place_files_or_write_logs_are_replaced_with_one_notice() -> None:
    text = (
        "[global]\nname=x\ndirectory=/srv\nfilename=/dev/sdb:data\nwrite_bw_log=l\nbuffered=0\nsize=1m\n[a]\n"
    )
    parameters = parsed(text, log_avg_msec=500)
    (notice,) = FIO.notices(parameters)
    assert notice == (
        "x.fio: left out: name, directory, write_bw_log; /dev/sdb is the file dev_sdb on the file system under test"
    )
    (job,) = parameters.jobs
    assert dict(job.options) == {"filename": "dev_sdb:data", "direct": "1", "size": "1m"}
    assert FIO.notices(parsed(TWO)) == ()


def test_keys_beside_the_file_take_the_place_of_its_own_and_variables_are_filled_in() -> None:
    text = "[global]\nsize=100%\nbs=${BS}\n[a]\nrw=read\nruntime=1h\n[b]\nrw=$MODE\n"
    variables = {"variables.BS": "64k", "variables.MODE": "write"}
    parameters = parsed(text, size="1GiB", runtime="10s", **variables)
    assert [(job.options["size"], job.options["runtime"]) for job in parameters.jobs] == [("1g", "10s")] * 2
    assert [(job.mode, job.options["bs"]) for job in parameters.jobs] == [("read", "64k"), ("write", "64k")]
    assert refused(text, **variables) == [
        "x.fio:2: size: 100% is a share of a device, and files have none: give 'size' in bytes beside 'file'"
    ]
    assert "'${BS}' is not set: write 'variables: {BS: …}' beside 'file'" in refused(text, size="1g")[0]
    for value in ("4k\nexec_prerun=reboot", "4k;x", "`reboot`", "$HOME"):
        assert refused(text, size="1g", **{**variables, "variables.BS": value})
        assert refused(text, size="1g", description=value, **variables)
    assert "may not run commands" in refused(text, size="1g", exec_prerun="reboot", **variables)[0]


def test_included_files_keep_their_names_and_lines() -> None:
    file = fio_jobs.DIRECTORY / "include-beside.fio"
    text = fio_jobs.workload(file).parameters.file_text
    seq, rand = parsed(text).jobs
    assert (seq.options["ioengine"], rand.options["iodepth"], rand.mode) == ("libaio", "8", "randread")
    assert "[rand]" in text
    wrong = text.replace("iodepth=8", "iodepht=8")
    assert [what.partition(" iod")[0] for what in refused(wrong)] == ["common/depth.inc:1:"]
    assert [what.partition(" rwx")[0] for what in refused(text.replace("[rand]", "rwx=1\n[rand]"))] == [
        "x.fio:7:"
    ]
    loop = {"a.fio": "include b.fio\n", "b.fio": "include a.fio\n"}
    study = fio_jobs.shape(file).study.replace("include-beside.fio", "a.fio")
    with pytest.raises(StudyError, match=r"nested more than 10 deep"):
        load_text(study, "s.yaml", (), loop)
    with pytest.raises(StudyError, match=r"longer than 1 MiB"):
        load_text(study, "s.yaml", (), {"a.fio": "include b.fio\n" * 1000, "b.fio": "#" * 10_000})


@pytest.mark.parametrize(
    ("jobs", "space_mib", "files"),
    [
        ("[a]\nfilename=f\n[b]\nfilename=f\nstonewall\n", 8, 1),
        ("[a]\nfilename=f:g\nnumjobs=4\n", 8, 2),
        ("[a]\nnumjobs=2\nnrfiles=4\n", 16, 8),
        ("[a]\n[a]\n", 8, 1),
        ("[a]\nfilename=f\nnumjobs=4\noffset_increment=8m\n", 32, 1),
        ("[a]\nfilename_format=f.$filenum\nnumjobs=4\nnrfiles=2\n", 8, 2),
        ("[a]\nfilename_format=f.$jobnum\nnumjobs=4\n[b]\nfilename_format=f.$jobnum\nnumjobs=2\n", 32, 4),
        ("[a]\nfilesize=1m-3m\nnrfiles=5\n", 15, 5),
        ("[a]\noffset=50%\n[b]\noffset=2m\n", 22, 2),
        ("[a]\nfile_append\n", 16, 1),
    ],
)
def test_a_file_that_jobs_share_needs_its_space_once(jobs: str, space_mib: int, files: int) -> None:
    parameters = parsed(f"[global]\nsize=8m\n{jobs}")
    assert FIO.space_bytes(parameters) == space_mib * MIB
    assert FIO.traits(parameters).files == files


@pytest.mark.parametrize(
    "line",
    [
        "filename=..", "filename=a::b", "filename=-", "opendir=/etc",
        "exec_prerun=reboot", "exec_postrun=reboot", "ioengine=external:/x.so", "ioengine=net", "ioengine=libblkio",
        "read_iolog=x", "merge_blktrace_file=x", "cgroup=x", "uid=0",
        "filename=${HOME}", "bs=$ncpus", "bs=$pagesize';reboot;'", "description=`reboot`", "mem=mmaphuge:/x",
        "buffer_pattern='x'", "fill_device=1", "include other.fio", "include\tother.fio", "rw=trim", "rw=randtrim",
        "  exec_prerun = reboot", "EXEC_PRERUN=reboot", "filename_format=$x", "bs=4k\rexec_prerun=x",
        "bs=4k\x0bexec_prerun=reboot", "bs=4k\u2028exec_prerun=reboot", "[../x]", "[/x]", "[a] exec_prerun=x", "[.x]",
        "numjobs=5000", "numjobs=4k", "iodepth=1000000000", "verify_async=100000", "nrfiles=1m", "numjobs=\u0663",
        "numjobs=", "verify_pattern=/x", "ioscheduler=none", "aux-path=/", "zonemode=zbd", "size=20%", "kb_base=1000",
        "bs=fourk", "runtime=soon", "wait_for=x", "rw=randomread", "readwrite=reed",
    ],
)  # fmt: skip
def test_what_reaches_outside_is_refused_with_a_remedy(line: str) -> None:
    said = refused(f"[a]\nsize=1m\n{line}\n")
    assert not [what for what in said if not REMEDY.search(what)]


@pytest.mark.parametrize(
    ("line", "beside"),
    [
        ("description={long}", {}), ("[{long}]", {}), ("stonewall={long}", {}),
        ("description=${{X}}", {"variables.X": "{long}"}), ("rw=read", {"description": "{long}"}),
    ],
)  # fmt: skip
def test_no_line_is_so_long_that_fio_reads_its_end_as_another_option(
    line: str, beside: dict[str, str]
) -> None:
    # OPT_LEN_MAX: fio 3.33 reads 8191 bytes at a time, older versions 4095. In UTF-8, characters have several.
    for long in ("x" * 8179 + "exec_prerun=reboot", "x" * 4083 + "exec_prerun=reboot", "\u20ac" * 1500):
        said = refused(
            f"[a]\nsize=1m\n{line.format(long=long)}\nsize=1m\n",
            **{key: value.format(long=long) for key, value in beside.items()},
        )
        assert "shorten it" in said[-1]


@pytest.mark.parametrize(
    "text", ["", "rw=read\n", "[global]\nbs=4k\n", "[a]\nrw=read\n", "[a]\nsize=1m\nbsx=4k\n"]
)
def test_what_is_no_job_file_is_refused(text: str) -> None:
    assert refused(text)


def test_a_command_line_is_no_job_file_and_says_how_to_write_one() -> None:
    said = refused("#!/bin/sh\nfio --name=a \\\n    --rw=read --size=1m\n")
    assert all("instead of --bs=4k" in each for each in said)
    assert len(said) == 2


def test_no_two_jobs_have_the_same_label() -> None:
    text = "[global]\nsize=1m\n" + "".join(
        f"[{name}]\n" for name in ("a_3", "a", "a", "total", "A_4", "phase 2")
    )
    parameters = parsed(text)
    assert [job.label for job in parameters.jobs] == ["a_3", "a", "a_4", "total_4", "a_4_5", "phase_2_6"]
    names = [metric.name for metric in FIO.metrics(parameters)]
    assert len(names) == len(set(names))


def test_of_a_file_of_mistakes_not_every_line_is_explained() -> None:
    """A file of 1 MiB with 300,000 wrong lines would take minutes: each is compared with all options."""
    found = read_jobs("f", "[a]\n" + "zz\n" * 2000, given=frozenset(), variables={})
    assert (len(found.refused), found.refused[0][:5], found.refused[-1][:7]) == (500, "f:2: ", "f:501: ")
    found = read_jobs(
        "f", "".join(f"[{number}]\n" for number in range(2000)), given=frozenset(), variables={}
    )
    assert found.refused == ["f: has 2000 jobs, at most 32 are possible: split it"]


@pytest.mark.parametrize(
    ("line", "headline"),
    [
        ("rw=randread\nrate_iops=40", ("read_lat_mean", "read_iops")),
        ("rw=write\nrate=1m\nfsync=8", ("write_lat_mean", "fsync_mean", "write_bandwidth")),
        ("rw=randread\nthinktime=1ms\ngtod_reduce=1", ("read_iops",)),
        (
            "rw=randread\niodepth=8\nioengine=libaio\nlatency_target=10ms",
            ("read_iops",),
        ),  # what it is to find out
        ("rw=randread", ("read_iops",)),
    ],
)
def test_the_latency_of_a_job_that_is_held_back_comes_before_the_rate_that_it_asks_for(
    line: str, headline: tuple[str, ...]
) -> None:
    """A disk that is slower by a third serves the same 40 requests per second: only the latency shows it."""
    parameters = parsed(f"[a]\nsize=1m\n{line}\n")
    assert FIO.headline(parameters) == headline
    assert tuple(metric.name for metric in FIO.metrics(parameters))[: len(headline)] == headline
