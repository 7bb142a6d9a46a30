"""The directory that a guest shares with the host. For root, a tmpfs limits how much the guest can write.

A user who may not mount gets a plain directory. ``guest.py`` then checks the free space.
"""

from __future__ import annotations

import os
from pathlib import Path

from fslab.storage import Workspace
from fslab.system import mounts, proc, trees

# Enough for the longest reply and kernel log, and for the free space below which a guest is ended
# (images.RESERVE_BYTES).
SIZE_BYTES = 256 << 20
FILES = 4096


def argv(directory: Path) -> list[str]:
    """Return the command that mounts the tmpfs. Device nodes and set-user-ID bits of a guest's root have no effect."""
    options = f"size={SIZE_BYTES},nr_inodes={FILES},mode=0700,nosuid,nodev"
    return ["mount", "-t", "tmpfs", "-o", options, "fslab", str(directory)]


def make(directory: Path, workspace: Workspace) -> None:
    """Create a journalled directory, limited in size if this user may mount.

    Call ``remove`` before ``workspace.exit`` closes: that marks the journal's entries as undone.
    """
    kinds = ("tree", "mount") if os.geteuid() == 0 else ("tree",)
    entries = [workspace.journal.will_create(kind, str(directory)) for kind in kinds]
    for entry in entries:
        workspace.exit.callback(workspace.journal.undone, entry)
    directory.mkdir(mode=0o700)
    if "mount" in kinds:  # in a container, even root may be refused
        proc.run(argv(directory), check=False)


def remove(directory: Path) -> None:
    """Remove the directory and its contents. Can be called twice."""
    mounts.unmount(directory)
    trees.remove(directory)
