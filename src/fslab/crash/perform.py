"""Perform sequences on a mounted file system, and mark in the disk's log when each step begins and returns.

Each sequence has its own directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from fslab.crash.contents import ATTRIBUTE, Place, attribute, part
from fslab.crash.sources import Mark, directory_of
from fslab.crash.steps import Sequence, Step, Sync, trees
from fslab.crash.tree import START
from fslab.system import mounts


def lay_out(root: Path, count: int) -> None:
    """Create the directories of all sequences, with the files that the sequences start from."""
    for number in range(count):
        directory = directory_of(root, number)
        directory.mkdir()
        for name, inode in START.names.items():
            _lay_out_one(directory / name, number, inode)


def _lay_out_one(path: Path, sequence: int, number: int) -> None:
    inode = START.inodes[number]
    if inode.kind == "directory":
        path.mkdir(inode.mode)
        return
    places = (Place(sequence=sequence, inode=number, part=stamp.number) for stamp in inode.parts)
    written = (part(place, stamp.generation) for place, stamp in zip(places, inode.parts, strict=True))
    path.write_bytes(b"".join(written))
    path.chmod(inode.mode)
    if inode.attribute is not None:
        os.setxattr(path, ATTRIBUTE, attribute(sequence, number, inode.attribute))


def perform(root: Path, number: int, steps: Sequence, mark: Mark) -> None:
    """Perform one sequence. Marks are ``SEQUENCE:STEP:begins`` and ``SEQUENCE:STEP:returned``; steps count from 1."""
    after = trees(steps)
    for at, step in enumerate(steps, start=1):
        mark(f"{number}:{at}:begins")
        if step.operation is not None:
            step.operation.run(directory_of(root, number), number, after[at], at + 1)
        else:
            synchronize(directory_of(root, number), step)
        mark(f"{number}:{at}:returned")


def synchronize(directory: Path, step: Step) -> None:
    """Call fsync or fdatasync on a file or directory, fsync on the sequence's directory, or syncfs."""
    if step.sync is Sync.SYNC:
        mounts.flush(directory)
        return
    where = directory / step.target if step.target else directory
    descriptor = os.open(where, os.O_RDONLY)
    try:
        (os.fdatasync if step.sync is Sync.FDATASYNC else os.fsync)(descriptor)
    finally:
        os.close(descriptor)
