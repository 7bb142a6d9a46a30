"""The directory that a guest shares with the host: with root a tmpfs, which limits how much the guest can write.

A user who may not mount gets a plain directory, whose size ``guest.py`` checks.
"""

from __future__ import annotations

import os
from pathlib import Path

from fslab.storage import Workspace
from fslab.system import mounts, proc, untrusted_files

# The longest reply and kernel log that are read, and the rest that a guest is ended at (images.RESERVE_BYTES).
SIZE_BYTES = 256 << 20
FILES = 4096


def argv(directory: Path) -> list[str]:
    """The command that bounds it; device nodes and set-user-ID bits of a guest's root do nothing there."""
    options = f"size={SIZE_BYTES},nr_inodes={FILES},mode=0700,nosuid,nodev"
    return ["mount", "-t", "tmpfs", "-o", options, "fslab", str(directory)]


def make(directory: Path, workspace: Workspace) -> None:
    """A new directory, bounded where this user may; journalled. ``remove`` has to have been called at the end."""
    kinds = ("tree", "mount") if os.geteuid() == 0 else ("tree",)
    entries = [workspace.journal.will_create(kind, str(directory)) for kind in kinds]
    for entry in entries:
        workspace.exit.callback(workspace.journal.undone, entry)
    directory.mkdir(mode=0o700)
    if "mount" in kinds:  # also root may be refused, in a container
        proc.run(argv(directory), check=False)


def remove(directory: Path) -> None:
    """Take it away with all that is in it. Can be called twice."""
    mounts.unmount(directory)
    untrusted_files.remove(directory)
