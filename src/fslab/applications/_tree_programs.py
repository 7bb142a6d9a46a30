"""The programs that pack, unpack, read and remove trees: tar(1), grep(1), rm(1)."""

from __future__ import annotations

import errno
from pathlib import Path

from fslab.applications import _source_tree as trees
from fslab.applications import run_program
from fslab.errors import ToolFailedError, ToolOutputError
from fslab.system.tools import Tool

_TAR = Tool(program="tar", package="tar")
_GREP = Tool(program="grep", package="grep")
_RM = Tool(program="rm", package="coreutils")
TOOLS = (_TAR, _GREP, _RM)


def pack(archive: str, tree: str, *, cwd: Path) -> None:
    """Pack a directory into a new archive that is not compressed, and remove it. Its files belong to root there."""
    _tar("--create", archive, "--owner=0", "--group=0", "--sort=name", tree, cwd=cwd)
    remove(tree, cwd=cwd)


def unpack(archive: str | Path, *, cwd: Path) -> None:
    _tar("--extract", archive, cwd=cwd)


def read(tree: str, marked: int, *, cwd: Path) -> None:
    """Search all files of a tree for its mark. ToolOutputError unless so many of them have it."""
    words = ("-r", "-l", "-F", "-e", trees.MARK, "--", tree)
    found = run_program(_GREP, *words, cwd=cwd).stdout.count("\n")
    if found != marked:
        raise ToolOutputError(f"grep found {found} of {marked} files")


def remove(*names: str, cwd: Path) -> None:
    run_program(_RM, "-r", "--", *names, cwd=cwd)


def _tar(what: str, archive: str | Path, *words: str, cwd: Path) -> None:
    """Run tar. If only a part of a record fits on the disk, it does not say why."""
    try:
        run_program(_TAR, what, "--file", archive, *words, cwd=cwd)
    except ToolFailedError as error:
        if "Wrote only" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device", str(cwd)) from error
        raise
