"""Unpack an archive of a source tree, read it through, and remove it: tar(1), grep(1), rm(1)."""

from __future__ import annotations

import errno
from pathlib import Path

from fslab.applications import Amount, DriveRequest, SteppedApplication, run_program
from fslab.applications import _source_tree as trees
from fslab.errors import ToolFailedError, ToolOutputError
from fslab.system.tools import Tool

_TAR = Tool(program="tar", package="tar")
_GREP = Tool(program="grep", package="grep")
_RM = Tool(program="rm", package="coreutils")
_ARCHIVE, _TREE = "archive.tar", "tree"


class UntarLoad(trees.TreeLoad):
    """unpack: `tar --extract` of an archive that is not compressed, on the same file system; walk: `grep -r`, which
    opens and reads every file; remove: `rm -r`. The files are text, sized and spread over directories as Linux'
    sources. unpack and remove include a sync of the file system. After unpack, walk reads from the page cache if the
    tree fits there; with `steps: walk` from the disk. Afterwards each file is compared with the archive's source."""

    known = ("unpack", "walk", "remove")
    writing = frozenset({"unpack", "remove"})
    reading = frozenset({"unpack", "walk"})
    files_per_s = 8000.0

    @property
    def space_bytes(self) -> int:
        """The archive and the tree."""
        return 2 * trees.space_bytes(self.files)


class Untar(SteppedApplication):
    summary = "unpack an archive with tar, read all files with grep, remove them with rm"
    tools = (_TAR, _GREP, _RM)
    Load = UntarLoad
    removes = frozenset({"remove"})

    def lay_out(self, drive: DriveRequest) -> None:
        """Make the tree, and the archive of it; remove the tree."""
        tree = _tree(drive)
        tree.make()
        owner = ("--owner=0", "--group=0", "--sort=name")
        _tar(drive.directory, "--create", *owner, _TREE)
        run_program(_RM, "-r", "--", _TREE, cwd=drive.directory)

    def perform(self, drive: DriveRequest, step: str) -> None:
        match step:
            case "unpack":
                _tar(drive.directory, "--extract")
            case "walk":
                words = ("-r", "-l", "-F", "-e", trees.MARK, "--", _TREE)
                found = run_program(_GREP, *words, cwd=drive.directory).stdout.count("\n")
                if found != trees.marked(drive.load.files):
                    raise ToolOutputError(f"grep found {found} of {trees.marked(drive.load.files)} files")
            case _:
                run_program(_RM, "-r", "--", _TREE, cwd=drive.directory)

    def amount(self, drive: DriveRequest, step: str) -> Amount:
        tree = _tree(drive)
        size = sum(tree.sizes)
        read, written = {"unpack": (size, size), "walk": (size, 0), "remove": (0, 0)}[step]
        return Amount(files=tree.files, read_bytes=read, written_bytes=written)

    def problem(self, drive: DriveRequest, step: str) -> str | None:
        """Compare the tree with the seed; after its removal, nothing must be left."""
        if step != "remove":
            return _tree(drive).problem()
        left = drive.directory / _TREE
        return f"{left.name} is still there" if left.exists() else None


def _tree(drive: DriveRequest) -> trees.SourceTree:
    return trees.SourceTree(root=Path(drive.directory, _TREE), files=drive.load.files, seed=drive.seed)


def _tar(directory: Path, what: str, *words: str) -> None:
    """Run tar. If only a part of a record fits on the disk, it does not say why."""
    try:
        run_program(_TAR, what, "--file", _ARCHIVE, *words, cwd=directory)
    except ToolFailedError as error:
        if "Wrote only" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device", str(directory)) from error
        raise
