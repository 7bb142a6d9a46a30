"""Runs mkfs beside other tests that kill their disks."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence

from fslab.system import proc

DEAD, DEAD_S = os.strerror(errno.ENOTCONN), 60.0


def run_mkfs(argv: Sequence[str]) -> proc.Completed:
    """Run a command of a file system's mkfs until no other test has a dead disk. The caller checks how it ended.

    mkfs.btrfs reads the image of each mounted loop device, also if another test has just killed its disk.
    """
    ends = time.monotonic() + DEAD_S
    while True:
        done = proc.run(argv, check=False)
        if DEAD not in done.stderr or time.monotonic() > ends:
            return done
        time.sleep(0.1)
