"""Whose directories fslab trusts, and whether anybody else could exchange what lies in one. Only reads."""

import os
import stat
from pathlib import Path

from fslab.errors import UnsafeError


def trusted() -> set[int]:
    """Return the users whose directories count as safe: root, fslab's own user, the owner of ``/`` and, for root, who
    called sudo."""
    return {0, os.geteuid(), os.stat("/").st_uid, *_caller()}  # noqa: PTH116


def check_closed(directory: Path) -> None:
    """Raise UnsafeError if another user could make what root writes in ``directory`` reach other files.

    Whoever owns it or a directory above it, or can write to one of them, can put a link in the place of what is in it;
    in one with the sticky bit, such as /tmp, only the owner can. Root alone is refused: for other users, a link
    leads to nothing that they may not write. ``directory``: without links, as ``Path.resolve`` returns it.
    """
    if os.geteuid() != 0:
        return
    owners = trusted()
    for place in (directory, *directory.parents):
        about = place.stat()
        if about.st_uid not in owners:
            raise UnsafeError(
                f"not used by root: {place} belongs to user {about.st_uid}, who could put a link to another file there",
                where=str(directory), hint="run fslab as this user, with or without sudo, or choose another 'path'",
            )  # fmt: skip
        if _is_open(about):
            raise UnsafeError(
                f"not used by root: other users can write to {place}, and could put a link to another file there",
                where=str(directory), hint=f"chmod go-w {place}, or choose another 'path'",
            )  # fmt: skip


def _is_open(about: os.stat_result) -> bool:
    """Return whether others than its owner can exchange files in a directory."""
    if about.st_mode & stat.S_ISVTX:
        return False
    private = about.st_gid in {0, about.st_uid}  # a group with the owner as its only member
    return bool(about.st_mode & (stat.S_IWOTH if private else stat.S_IWOTH | stat.S_IWGRP))


def _caller() -> list[int]:
    given = os.environ.get("SUDO_UID", "")
    return [int(given)] if os.geteuid() == 0 and given.isdigit() else []
