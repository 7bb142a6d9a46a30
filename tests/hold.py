"""Stops a campaign at a defined point: its workload waits for a line from the test.

    workloads: {held: {tool: command, run: HOLD.run, space: 1m}}

This does not depend on timing: the test is told when a trial is in its measured run, and it decides when the trial
ends.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path

from tests.starter import Started


class Hold:
    """Two FIFOs in ``directory``: trials write a line to ``here`` when they run, and wait for a line from ``go``."""

    def __init__(self, directory: Path) -> None:
        paths = [directory / name for name in ("here", "go")]
        for path in paths:
            os.mkfifo(path)
        # Opened for reading and writing, so that there is no end of file when a trial closes its end.
        self._here, self._go = (os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in paths)
        script = f"echo > '{paths[0]}'; read line < '{paths[1]}'"
        self.run = json.dumps(["sh", "-c", script])

    def reached(self, process: subprocess.Popen[str] | Started) -> None:
        """Wait until the next trial of the workload is in its measured run. Fail if ``process`` ends before that."""
        while not select.select([self._here], [], [], 0.2)[0]:
            assert process.poll() is None, "it ended before the trial began"
        assert os.read(self._here, 1) == b"\n"

    def release(self, trials: int = 1) -> None:
        """Let this number of trials end: the waiting one first, then later ones."""
        os.write(self._go, b"\n" * trials)

    def release_all(self) -> None:
        """Let all trials end (up to 1,000)."""
        self.release(1000)

    def close(self) -> None:
        """Close the FIFOs."""
        os.close(self._here)
        os.close(self._go)


def mark_of(journal: Path) -> str:
    """Return the mark of a campaign's processes, which only its journal has; empty before the first one is started."""
    lines = (json.loads(line) for line in journal.read_text().splitlines())
    return next((line["mark"] for line in lines if "mark" in line), "")
