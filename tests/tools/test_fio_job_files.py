"""Tests of job files with the installed fio: it accepts what fslab makes of them, and runs the jobs in that order."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests import fio_jobs
from tests.limits import ran

from fslab import feasibility
from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.errors import ToolFailedError, UsageError
from fslab.feasibility._campaign import refused_by_tools
from fslab.system import proc
from fslab.units import parse_duration, parse_size
from fslab.workloads import Commands, Job, ParsedWorkload, Reading, ToolOutput, parsed
from fslab.workloads._fio_amounts import largest_request
from fslab.workloads._fio_one_job import phases
from fslab.workloads._fio_refused_options import cut_off

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
# Each of these runs for a second or less.
SHORT = {
    "size": "1m",
    "runtime": "1",
    "startdelay": "0",
    "ioengine": "psync",
    "iodepth": "1",
    "time_based": "0",
}
RUN = [
    "boot-storm",
    "one-file-four-steps",
    "several-devices",
    "include-beside",
    "compressible-data",
    "metadata-database-log",
]


def commands_of(work: ParsedWorkload[Any], place: Path, *more: str) -> Commands:
    """Return the commands of a workload, with its input files written. ``more``: lines for all of its jobs."""
    for name in ("data", "scratch"):
        (place / name).mkdir(parents=True)
    made = work.commands(Job(directory=place / "data", scratch=place / "scratch", seed=7))
    for name, text in made.inputs.items():
        whole = text.replace("[global]\n", "\n".join(["[global]", *more, ""]))
        if more:  # a log of each process
            whole = whole.replace("per_job_logs=0\n", "")
        (place / "scratch" / name).write_text(whole)
    return made


def fio(argv: tuple[str, ...], place: Path) -> None:
    done = ran(argv, cwd=place / "data")
    assert done.returncode == 0, done.stdout + done.stderr


def reading_of(work: ParsedWorkload[Any], made: Commands, place: Path) -> Reading:
    files = {name: (place / "scratch" / name).read_text() for name in made.outputs}
    return work.read(ToolOutput(stdout="", stderr="", files=files, duration_s=1))


def work_of(text: str) -> ParsedWorkload[Any]:
    return parsed(WorkloadSpec(name="w", tool="fio", parameters={"file": "x.fio", "file_text": text}))


def run(work: ParsedWorkload[Any], place: Path) -> Reading:
    """Run all commands of a workload. Return its figures."""
    made = commands_of(work, place)
    for argv in (*made.prepare, made.run):
        fio(argv, place)
    return reading_of(work, made, place)


def stack_with(work: ParsedWorkload[Any]) -> Cell:
    medium = MediumSpec(name="m", type="directory", options={})
    spec = WorkloadSpec(name="w", tool="fio", parameters=work.parameters.model_dump(exclude_unset=True))
    return Cell(stack=StackSpec(name="s", medium=medium), workload=spec)


def test_what_fslab_believes_of_each_job_is_what_fio_sets_up(tmp_path: Path) -> None:
    """fio's words: ``a: (g=0): rw=read, bs=(R) 4096B-4096B, (W) …, ioengine=psync, iodepth=1``."""
    words = re.compile(
        r"(?m)^(.+): \(g=\d+\): rw=(\w+), bs=\(R\) \S+-([^,]+), \(W\) \S+-([^,]+),.* iodepth=(\d+)$"
    )
    works = [fio_jobs.workload(file) for file in fio_jobs.FILES if not fio_jobs.shape(file).refused]
    names = [str(number) for number in range(len(works))]
    for name, work in zip(names, works, strict=True):
        (check,) = work.checks(Job(directory=Path(), scratch=Path(), seed=7))
        *start, file = check.argv
        assert file == check.file
        (tmp_path / name).write_text(check.text)
    # All files at once: at each start, fio calibrates its clock for a tenth of a second of CPU time.
    done = ran([*start, *names], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(names)
    jobs = [job for work in works for job in work.parameters.jobs]
    for job, (name, mode, *sizes, depth) in zip(jobs, words.findall(done.stdout), strict=True):
        assert (job.name, job.number("iodepth", 1)) == (name, int(depth))
        assert {"readwrite": "rw"}.get(job.mode, job.mode) == mode
        mine = largest_request(job.options)
        assert max(map(parse_size, (size.rstrip("B").replace("i", "") for size in sizes))) <= mine


def test_a_time_is_what_fio_reads() -> None:
    keys = ("runtime", "startdelay", "thinktime", "max_latency", "thinktime_spin")
    units = ("", "us", "usec", "ms", "msec", "MSEC", "s", "S", "m", "h", "d", "D")
    amounts = [(key, unit) for key in keys for unit in units]
    known = read_by_fio([(key, f"7{unit}") for key, unit in amounts])
    for (key, unit), lasts_us in zip(amounts, known, strict=True):
        assert cut_off(key, f"7{unit}") is None
        default = "us" if key in {"thinktime", "max_latency", "thinktime_spin"} else "s"
        assert round(parse_duration(f"7{unit or default}") * 1e6) == lasts_us, (key, unit)
        if key == "runtime":
            text = f"[j]\nsize=1m\nruntime=7{unit}\n"
            work = work_of(text)
            assert round(work.parameters.jobs[0].runtime_s * 1e6) == lasts_us, unit


def test_a_time_that_fio_reads_as_microseconds_is_refused() -> None:
    written = ("7sec", "7min", "7mins", "7hour", "7days", "7w", "7ns", "7k", "7m30s")
    amounts = [(key, each) for key in ("runtime", "startdelay", "thinktime") for each in written]
    assert read_by_fio(amounts) == [7] * len(amounts)
    assert [each for each in amounts if "as another time" not in str(cut_off(*each))] == []


def read_by_fio(amounts: list[tuple[str, str]]) -> list[int]:
    """Return what the installed fio makes of each amount, written for a key. It calibrates its clock when it starts."""
    done = ran(
        [
            "fio", "--parse-only", "--debug=parse", "--name=j", "--size=1m",
            *(f"--{key}={written}" for key, written in amounts),
        ]
    )  # fmt: skip
    found = re.findall(
        r" __handle_option=(\w+), .*, ptr=(\w+)\n.*ret=0, out=(\d+)", done.stdout + done.stderr
    )
    read = [(key, written, int(value)) for key, written, value in found if (key, written) in amounts]
    assert [each[:2] for each in read] == amounts
    return [value for *_, value in read]


@pytest.mark.parametrize(
    ("lines", "space_mib", "once_mib"),
    [
        ("size=64m\nfilesize=1m\nnrfiles=4", 4, 4),
        ("size=2m\nfilesize=1m\nnrfiles=4", 4, 2),
        ("size=64m\nfilesize=1m\nfilename=a:b", 2, 2),
        ("filesize=1m\nnrfiles=4\nnumjobs=2", 8, 8),
        ("size=1m\nfilesize=2m", 2, 1),
    ],
)
def test_a_pass_is_over_the_files_that_fio_makes(
    tmp_path: Path, lines: str, space_mib: int, once_mib: int
) -> None:
    """``size`` beside ``filesize`` is what a job transfers, and at most its files."""
    work = work_of(f"[j]\nrw=write\nbs=64k\n{lines}\n")
    reading = run(work, tmp_path)
    assert work.space_bytes() == sum(each.stat().st_size for each in (tmp_path / "data").iterdir())
    assert work.space_bytes() == space_mib << 20
    assert reading.written_bytes == work.parameters.jobs[0].bytes == once_mib << 20
    assert reading.passes == 1


@pytest.mark.parametrize(
    ("lines", "place", "told"),
    [
        ("[a]\nrw=read\n[b]\nrandom_generator=foo\n", "x.fio:6", "failed parsing random_generator=foo"),
        ("[a]\nrw=read\n[b]\nwait_for=a\nrate=5m\nrate_min=9m\n", "x.fio:5", "minimum rate exceeds rate"),
        ("[a]\nwait_for=b\n", None, None),
    ],
)
def test_what_fio_refuses_is_refused_with_its_sentence_and_line_before_anything_is_made(
    lines: str, place: str | None, told: str | None, tmp_path: Path
) -> None:
    text = f"[global]\nsize=1m\n{lines}"
    if place is None or told is None:  # refused by fslab
        with pytest.raises(ValidationError):
            work_of(text)
        return
    cell = stack_with(work_of(text))
    medium = MediumSpec(name="m", type="directory", options={"path": str(tmp_path)})
    cell = cell.model_copy(update={"stack": cell.stack.model_copy(update={"medium": medium})})
    with pytest.raises(UsageError, match=f"^{place}: fio refuses it: .*{told}"):
        feasibility.check("c", [cell], frozenset())
    assert any(told in why for why in feasibility.foresee([cell], tmp_path)[1])
    assert not list(tmp_path.iterdir())


def test_jobs_are_checked_with_one_start_and_only_what_is_refused_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[tuple[str, ...]] = []
    run = proc.run

    def counted(argv: tuple[str, ...], **how: Any) -> proc.Completed:
        started.append(argv)
        return run(argv, **how)

    monkeypatch.setattr(proc, "run", counted)

    def cell(name: str, **more: str) -> Cell:
        medium = MediumSpec(name="m", type="directory", options={"path": str(tmp_path)})
        parameters = {"rw": "write", "size": "1m", "bs": name, **more}
        work = WorkloadSpec(name=name, tool="fio", parameters=parameters)
        return Cell(stack=StackSpec(name="s", medium=medium), workload=work)

    accepted = [cell(f"{number}k") for number in range(1, 21)]
    assert refused_by_tools(accepted) == []
    assert [argv.count("--rw=write") for argv in started] == [16, 4]
    (error,) = refused_by_tools([*accepted[:3], cell("32k", random_generator="foo")])
    assert error.where == "workload '32k'"
    assert "failed parsing random_generator=foo" in error.what


@pytest.mark.parametrize("name", RUN)
def test_job_files_run_and_have_every_figure(name: str, tmp_path: Path) -> None:
    (file,) = [file for file in fio_jobs.FILES if name in file.stem]
    work = fio_jobs.workload(file, **SHORT)
    reading = run(work, tmp_path)
    assert {name: reading.metrics[name] for name in work.headline() if not reading.metrics[name]} == {}
    assert set(reading.metrics) == {metric.name for metric in work.metrics()}
    used = sum(each.stat().st_size for each in (tmp_path / "data").iterdir())
    assert used <= work.space_bytes()


def test_the_rate_of_each_job_is_logged_from_its_own_start(tmp_path: Path) -> None:
    text = (
        "[global]\nrate=8m\nbs=64k\nrw=write\n[first]\nsize=8m\nnumjobs=2\n"
        "[second]\nsize=16m\nstonewall\nramp_time=500ms\n"
    )
    first, second = run(work_of(text), tmp_path).rates
    assert (first.what, second.what) == ("first bandwidth", "second bandwidth")
    assert len(first.values) >= 2
    assert first.values[0] > 0
    assert second.values[0] > 0, "neither the time before its start nor its ramp is a pause"


@pytest.mark.parametrize(("ramp", "ends"), [("2", True), ("200ms", False)])
def test_rates_of_a_ramp_are_no_result(ramp: str, ends: bool, tmp_path: Path) -> None:
    text = f"[early]\nsize=1m\nbs=4k\nrw=randread\nrate_iops=100\ntime_based\nruntime=1\nramp_time={ramp}\n"
    refused = pytest.raises(ToolFailedError, match="'early' ended within its ramp time")
    with refused if ends else nullcontext():
        run(work_of(text), tmp_path)


def test_jobs_of_later_phases_begin_after_those_of_earlier_ones(tmp_path: Path) -> None:
    text = (
        "[global]\nsize=256k\nbs=4k\nrw=write\nrate_iops=200\n[a]\n[b]\n[after a]\nwait_for=a\n[wall]\nstonewall\n"
        "[beside]\n[late]\nstartdelay=3\n[last]\nwait_for=late\n"
    )
    work = work_of(text)
    made = commands_of(work, tmp_path, "write_lat_log=l", "log_unix_epoch=1")
    fio(made.run, tmp_path)
    times = []
    for number in range(1, 8):
        lines = (tmp_path / "data" / f"l_lat.{number}.log").read_text().splitlines()
        times.append([int(line.split(",")[0]) for line in lines])
    assert phases(work.parameters.jobs) == (1, 1, 2, 3, 3, 4, 5)
    first, last = [min(each) for each in times], [max(each) for each in times]
    after = {2: [0], 3: [0, 1, 2], 4: [0, 1, 2], 5: [0, 1, 2], 6: [5]}
    for job, before in after.items():
        assert all(first[job] >= last[other] for other in before), (job, before, times)


def test_the_end_of_a_job_with_exitall_ends_the_others_and_not_those_behind_a_wall(tmp_path: Path) -> None:
    text = (
        "[global]\nsize=8m\nbs=4k\nrw=write\n[long]\nrate=1m\n[short]\nexitall\nio_size=64k\n"
        "[wall]\nstonewall\nio_size=64k\n"
    )
    fio(commands_of(work_of(text), tmp_path).run, tmp_path)
    jobs = json.loads((tmp_path / "scratch" / "fio.json").read_text())["jobs"]
    long, short, wall = (job["write"]["io_bytes"] for job in jobs)
    assert long < 8 << 20
    assert short == wall == 64 << 10
