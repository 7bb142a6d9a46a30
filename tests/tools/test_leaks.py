"""Tests of what ends an interrupted session: it must end processes of the session, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests import leaks

READY = "print(flush=True); signal.pause()"
IGNORES = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {READY}"


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as undo:
        yield undo


def start(undo: ExitStack, code: str, *words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a Python process, and wait until it has begun to run its code."""
    process = subprocess.Popen([sys.executable, "-c", code, *words], cwd=cwd, stdout=subprocess.PIPE)
    undo.callback(process.wait)
    undo.callback(process.kill)
    assert process.stdout is not None
    undo.callback(process.stdout.close)
    assert process.stdout.readline() == b"\n"
    return process


def test_processes_of_a_directory_are_ended_and_no_others(
    tmp_path: Path, started: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaks, "GRACE_S", 1.0)
    ours, other = tmp_path / "session-1", tmp_path / "session-10"
    for each in (ours, other):
        each.mkdir()
    waits = f"import signal; {READY}"
    inside = start(started, waits, cwd=ours)
    about = start(started, waits, f"{ours}/store.sqlite")
    stubborn = start(started, IGNORES, cwd=ours)
    stopped = start(started, waits, cwd=ours)
    stopped.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
    kept = [start(started, waits, cwd=other), start(started, waits, f"{ours}0/store.sqlite")]
    leaks.end_below(ours)
    assert [each.wait() for each in (inside, about, stopped)] == [-signal.SIGTERM] * 3
    assert stubborn.wait() == -signal.SIGKILL
    assert [each.poll() for each in kept] == [None, None]
