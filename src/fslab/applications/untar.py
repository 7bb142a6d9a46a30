"""Unpack an archive of a source tree, read it through, and remove it: tar(1), grep(1), rm(1)."""

from __future__ import annotations

from fslab.applications import Amount, DriveRequest, SteppedApplication
from fslab.applications import _source_tree as trees

_ARCHIVE, _TREE = "archive.tar", "tree"


class UntarLoad(trees.TreeLoad):
    """unpack: `tar --extract` of an uncompressed archive on the same file system; walk: `grep -r`, which reads every
    file; remove: `rm -r`. The files are spread over directories as Linux' sources. After unpack, walk reads from the
    page cache if the tree fits there; with `steps: walk` from the disk. Afterwards each file is compared with its
    source."""

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
    tools = trees.TOOLS
    Load = UntarLoad
    removes = frozenset({"remove"})

    def lay_out(self, drive: DriveRequest) -> None:
        trees.tree_of(drive, _TREE).make()
        trees.pack(_ARCHIVE, _TREE, cwd=drive.directory)

    def perform(self, drive: DriveRequest, step: str) -> None:
        match step:
            case "unpack":
                trees.unpack(_ARCHIVE, cwd=drive.directory)
            case "walk":
                trees.read(_TREE, trees.marked(drive.load.files), cwd=drive.directory)
            case _:
                trees.remove(_TREE, cwd=drive.directory)

    def amount(self, drive: DriveRequest, step: str) -> Amount:
        tree = trees.tree_of(drive, _TREE)
        size = sum(tree.sizes)
        read, written = {"unpack": (size, size), "walk": (size, 0), "remove": (0, 0)}[step]
        return Amount(files=tree.files, read_bytes=read, written_bytes=written)

    def problem(self, drive: DriveRequest, step: str) -> str | None:
        """Compare the tree with the seed; after its removal, nothing must be left."""
        if step != "remove":
            return trees.tree_of(drive, _TREE).problem()
        left = drive.directory / _TREE
        return f"{left.name} is still there" if left.exists() else None
