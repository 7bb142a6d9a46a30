"""The directory that a guest shares with the host. For root, a tmpfs limits how much the guest can write.

A user who may not mount gets a plain directory. ``guest.py`` then checks the free space.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from fslab.errors import FslabError
from fslab.storage import Workspace
from fslab.system import mounts, proc, trees

log = logging.getLogger("fslab.guest")

# Enough for the longest reply and kernel log, and for the free space below which a guest is ended
# (images.RESERVE_BYTES).
SIZE_BYTES = 256 << 20
FILES = 4096


def argv(directory: Path) -> list[str]:
    """Return the command that mounts the tmpfs. Device nodes and set-user-ID bits of a guest's root have no effect."""
    options = f"size={SIZE_BYTES},nr_inodes={FILES},mode=0700,nosuid,nodev"
    return ["mount", "-t", "tmpfs", "-o", options, "fslab", str(directory)]


def make(directory: Path, workspace: Workspace) -> None:
    """Create a journalled directory, limited in size if this user may mount. The end of the campaign removes it."""
    kinds = ("tree", "mount") if os.geteuid() == 0 else ("tree",)
    entries = [workspace.journal.will_create(kind, str(directory)) for kind in kinds]
    workspace.exit.callback(_undo, directory, workspace, entries)
    directory.mkdir(mode=0o700)
    if "mount" in kinds:  # in a container, even root may be refused
        proc.run(argv(directory), check=False)


def remove(directory: Path) -> None:
    """Remove the directory and its contents before the end of the campaign. While it is in use, it stays until then:
    another process can keep it busy, but must not keep a guest from being ended. Can be called twice."""
    try:
        _remove(directory)
    except (FslabError, OSError) as error:
        log.warning("tried again at the end of the campaign: %s", error)


def _undo(directory: Path, workspace: Workspace, entries: Sequence[str]) -> None:
    _remove(directory)
    for entry in entries:
        workspace.journal.undone(entry)


def _remove(directory: Path) -> None:
    mounts.unmount(directory)
    trees.remove(directory)
