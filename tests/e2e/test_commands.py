"""Tests of studies with their own commands and files.

Commands run only if an option or the user on a terminal allows them. The text of files is stored.
"""

from __future__ import annotations

import os
import pty
import select
import time
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab
from tests.limits import LIMIT_S

OWN = """\
title: a command of mine
media: {here: {type: directory, path: .}}
stacks: {here: {medium: here}}
workloads: {mine: {tool: command, run: "touch {directory}/made", space: 1m}}
trials: 1
cache: warm
"""
JOB = """\
title: a job file
media: {here: {type: directory, path: .}}
stacks: {here: {medium: here}}
workloads: {job: {tool: fio, file: job.fio}}
trials: 2
cache: warm
"""
FIO = """\
[writer]
rw=write
bs=4k
size=%s
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.yaml").write_text(OWN)
    return tmp_path


def test_commands_are_refused_unless_they_are_allowed(fslab: Fslab, own: Path) -> None:
    refused = fslab("run", "own.yaml", code=2).stderr
    assert "--allow-commands" in refused
    assert f"touch {own}/DIRECTORY/made" in refused
    assert fslab.json("results", "--list", "--json") == [], "nothing is stored"
    fslab("run", "own.yaml", "--allow-commands")
    assert {trial["status"] for trial in fslab.trials()} == {"ok"}
    refused = fslab("run", "--resume", "last", "--trials", "2", code=2).stderr
    assert f"touch {own}/DIRECTORY/made" in refused
    before = len(fslab.trials())
    fslab("run", "--resume", "last", "--trials", "2", "--allow-commands")
    assert len(fslab.trials()) > before


@pytest.mark.parametrize(("answer", "runs"), [(b"y\n", True), (b"n\n", False), (b"\x04", False)])
def test_a_terminal_is_asked(fslab: Fslab, own: Path, answer: bytes, runs: bool) -> None:
    """On a terminal, commands run only after the answer y. Ctrl-D means no."""
    master, slave = pty.openpty()
    process = fslab.start("run", "own.yaml", terminal=slave)
    try:
        said = _until(master, b"Run them?", b"")
        assert f"touch {own}/DIRECTORY/made" in said.replace(b"\r\n    ", b"").decode(), "on several lines"
        os.write(master, answer)
        _until(master, None, said)
        assert (process.wait(timeout=LIMIT_S) == 0) is runs
    finally:
        process.kill()
        os.close(master)
    stored = fslab.json("results", "--list", "--json")
    assert [each["trials"] for each in stored] == ([1] if runs else [])


def test_a_file_that_changed_is_told_on_resume_and_its_stored_text_runs(fslab: Fslab, own: Path) -> None:
    (own / "job.yaml").write_text(JOB)
    job = own / "job.fio"
    job.write_text(FIO % "1m")
    fslab("run", "job.yaml", "--set", "trials=1")
    assert "has changed" not in fslab("run", "--resume", "job.yaml", "--trials", "2").stderr
    job.write_text(FIO % "2m")
    said = fslab("run", "--resume", "job.yaml", "--trials", "3").stderr
    assert "'job.fio' has changed since the campaign started: its stored text is used" in " ".join(
        said.split()
    )
    job.unlink()
    fslab("run", "--resume", "job.yaml", "--trials", "4")
    trials = fslab.trials()
    assert len(trials) >= 4
    assert all(trial["metrics"]["write_iops"]["value"] for trial in trials)
    assert len({str(trial["workload"]) for trial in trials}) == 1
    assert "size=2m" not in str(trials)


def _until(terminal: int, wanted: bytes | None, said: bytes) -> bytes:
    """Return ``said`` and what is read from a terminal until ``wanted`` appears or the other side is closed."""
    deadline = time.monotonic() + LIMIT_S
    while wanted is None or wanted not in said:
        assert time.monotonic() < deadline, said
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        said += piece
    return said
