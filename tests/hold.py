"""A campaign that stands still where a test wants it: its workload waits for a word from the test.

    workloads: {held: {tool: command, run: HOLD.run}}

Nothing is timed: the test knows that a trial is in its measured run, and the trial ends when the test says so.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path


class Hold:
    """Two FIFOs in ``directory``: trials say in one that they run, and wait for a line in the other."""

    def __init__(self, directory: Path) -> None:
        paths = [directory / name for name in ("here", "go")]
        for path in paths:
            os.mkfifo(path)
        # Opened for both, neither side's end is the end of the FIFO.
        self._here, self._go = (os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in paths)
        script = f"echo > '{paths[0]}'; read line < '{paths[1]}'"
        self.run = json.dumps(["sh", "-c", script])

    def reached(self, process: subprocess.Popen[str]) -> None:
        """Wait until the next trial of the workload is in its measured run; fails when ``process`` ends before."""
        while not select.select([self._here], [], [], 0.2)[0]:
            assert process.poll() is None, "it ended before the trial began"
        assert os.read(self._here, 1) == b"\n"

    def release(self, trials: int = 1) -> None:
        """Let so many trials end, the one that waits and those to come."""
        os.write(self._go, b"\n" * trials)

    def release_all(self) -> None:
        """Let every trial end, however many there will be."""
        self.release(1000)

    def close(self) -> None:
        """No trial is waited for any more."""
        os.close(self._here)
        os.close(self._go)
