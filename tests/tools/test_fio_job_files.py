"""Tests of job files with the installed fio: it accepts what fslab makes of them, and runs the jobs in that order."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import fio_jobs
from tests.limits import LIMIT_S

from fslab.cell import WorkloadSpec
from fslab.workloads import Commands, Job, ParsedWorkload, ToolOutput, parsed
from fslab.workloads._fio_phases import phases

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
        (place / "scratch" / name).write_text(whole)
    return made


def fio(argv: tuple[str, ...], place: Path) -> None:
    done = subprocess.run(
        argv, cwd=place / "data", capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_fio_accepts_every_job_file_that_fslab_accepts(tmp_path: Path) -> None:
    for file in fio_jobs.FILES:
        if not fio_jobs.shape(file).refused:
            made = commands_of(fio_jobs.workload(file), tmp_path / file.stem)
            fio(made.prepare[0], tmp_path / file.stem)


@pytest.mark.parametrize("name", RUN)
def test_job_files_run_and_have_every_figure(name: str, tmp_path: Path) -> None:
    (file,) = [file for file in fio_jobs.FILES if name in file.stem]
    work = fio_jobs.workload(file, **SHORT)
    made = commands_of(work, tmp_path)
    for argv in (*made.prepare, made.run):
        fio(argv, tmp_path)
    files = {"fio.json": (tmp_path / "scratch" / "fio.json").read_text()}
    reading = work.read(ToolOutput(stdout="", stderr="", files=files, duration_s=1))
    assert {name: reading.metrics[name] for name in work.headline() if not reading.metrics[name]} == {}
    assert set(reading.metrics) == {metric.name for metric in work.metrics()}
    used = sum(each.stat().st_size for each in (tmp_path / "data").iterdir())
    assert used <= work.space_bytes()


def test_jobs_of_later_phases_begin_after_those_of_earlier_ones(tmp_path: Path) -> None:
    text = (
        "[global]\nsize=256k\nbs=4k\nrw=write\nrate_iops=200\n[a]\n[b]\n[after a]\nwait_for=a\n[wall]\nstonewall\n"
        "[beside]\n[late]\nstartdelay=3\n[last]\nwait_for=late\n"
    )
    keys = {"file": "x.fio", "file_text": text}
    work = parsed(WorkloadSpec(name="w", tool="fio", parameters=keys))
    made = commands_of(work, tmp_path, "write_lat_log=l", "log_unix_epoch=1")
    fio(made.run, tmp_path)
    times = []
    for number in range(1, 8):
        lines = (tmp_path / "data" / f"l_lat.{number}.log").read_text().splitlines()
        times.append([int(line.split(",")[0]) for line in lines])
    starts = [job.start for job in work.parameters.jobs]
    assert phases(starts) == (1, 1, 2, 3, 3, 4, 5)
    first, last = [min(each) for each in times], [max(each) for each in times]
    after = {2: [0], 3: [0, 1, 2], 4: [0, 1, 2], 5: [0, 1, 2], 6: [5]}
    for job, before in after.items():
        assert all(first[job] >= last[other] for other in before), (job, before, times)
