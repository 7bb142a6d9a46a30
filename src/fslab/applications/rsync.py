"""Copy a tree with rsync(1): for the first time, again without a change, and after 1 % of the files have changed."""

from __future__ import annotations

from fslab.applications import Amount, DriveRequest, SteppedApplication, run_program
from fslab.applications import _source_tree as trees
from fslab.system.tools import Tool

_RSYNC = Tool(program="rsync", package="rsync")
_SOURCE, _COPY = "source", "copy"


class RsyncLoad(trees.TreeLoad):
    """`rsync --archive --delete` of a tree to another directory of the file system. first: there is no copy yet;
    unchanged: rsync only compares names, sizes and times; changed: 1 % of the files have other contents, which rsync
    copies as a whole. After first, the next steps find names and inodes in memory; as a step of its own (`steps:
    unchanged`) it reads them from the disk. Afterwards each file is compared with the source."""

    known = ("first", "unchanged", "changed")
    writing = frozenset({"first", "changed"})
    reading = frozenset({"first", "unchanged", "changed"})
    files_per_s = 5000.0

    @property
    def at_once(self) -> int:
        """rsync is a sender, a receiver and a generator."""
        return 3

    @property
    def space_bytes(self) -> int:
        """The tree and its copy; a changed file is there twice for a moment."""
        return 2 * trees.space_bytes(self.files) + (16 << 20)


class Rsync(SteppedApplication):
    summary = "rsync: copy a tree, copy it again without a change, and after 1 % of it has changed"
    tools = (_RSYNC,)
    Load = RsyncLoad

    def lay_out(self, drive: DriveRequest) -> None:
        trees.tree_of(drive, _SOURCE).make()

    def before(self, drive: DriveRequest, step: str) -> None:
        if step == "changed":
            trees.tree_of(drive, _SOURCE).change()

    def perform(self, drive: DriveRequest, step: str) -> None:  # noqa: ARG002 - the same command
        run_program(_RSYNC, "--archive", "--delete", f"{_SOURCE}/", f"{_COPY}/", cwd=drive.directory)

    def amount(self, drive: DriveRequest, step: str) -> Amount:
        tree = trees.tree_of(drive, _SOURCE)
        copied = {"first": range(tree.files), "unchanged": range(0), "changed": tree.changed}[step]
        size = sum(len(tree.contents(number, int(step == "changed"))) for number in copied)
        return Amount(files=tree.files, read_bytes=size, written_bytes=size)

    def problem(self, drive: DriveRequest, step: str) -> str | None:
        tree = trees.tree_of(drive, _COPY)
        return tree.problem(tree.changed if step == "changed" else range(0))
