"""Tries on a mounted file system what a workload needs, if that is cheap and leaves nothing behind.

A declared limit comes from documentation. Another kernel version, or the file system of an existing directory, may
differ.
"""

import os
from pathlib import Path

from fslab.errors import UnsupportedError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system import overlay

TRY_NAME = ".fslab-try"


def check_mounted(directory: Path, needs: Needs, filesystem: str) -> None:
    """Raise UnsupportedError for the first needed ability that fails when tried in ``directory``."""
    for ability in sorted(needs.abilities & set(TRIES)):
        path = directory / TRY_NAME
        try:
            TRIES[ability](path)
        except OSError as error:
            raise UnsupportedError(
                f"not possible: it needs {ability}, which fails on {filesystem} here ({error.strerror})",
                where=str(directory),
                hint="remove this file system from the study, or change the workload",
            ) from error
        finally:
            for made in (path, _other(path)):
                made.unlink(missing_ok=True)


def _other(path: Path) -> Path:
    return path.with_name(f"{path.name}-2")


def _direct(path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_CLOEXEC, 0o600))


def _hard_link(path: Path) -> None:
    path.touch()
    _other(path).hardlink_to(path)


def _symlink(path: Path) -> None:
    path.symlink_to(TRY_NAME)


def _overlay(path: Path) -> None:
    if os.geteuid() == 0:  # another user needs a process of its own for it (overlay.mounted)
        overlay.attempt(path)


TRIES = {
    Ability.DIRECT_READS: _direct,
    Ability.DIRECT_WRITES: _direct,
    Ability.HARD_LINKS: _hard_link,
    Ability.SYMLINKS: _symlink,
    Ability.OVERLAY: _overlay,
}
