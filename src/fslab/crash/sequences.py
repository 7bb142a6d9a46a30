"""Short sequences of operations as a source: perform, read back, and judge them by the model of a directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fslab.crash import bounded_sequences, operations, oracle
from fslab.crash.contents import ATTRIBUTE, BLOCK_BYTES, Place, attribute, part
from fslab.crash.durable_history import History
from fslab.crash.oracle import Seen
from fslab.crash.sources import Mark, Progress, RunVerdict, Source, check_no_shortage, directory_of
from fslab.crash.steps import LackedError, Sequence, Step, Sync, trees
from fslab.crash.tree import START, Tree
from fslab.storage.crash_promises import Promises
from fslab.system import mounts
from fslab.system.files import opened

FILE_LIMIT_BYTES = 1 << 20
PROBE = "written-afterwards"  # no step makes a name of more than one letter


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequences(Source[dict[str, Seen]]):
    """Each sequence is a run. ``lengths``: if they are a sample, of how many operations, how many of how many."""

    chosen: tuple[Sequence, ...]
    lengths: Mapping[int, tuple[int, int]] = field(default_factory=dict, compare=False)

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(map(len, self.chosen))

    def lay_out(self, root: Path) -> None:
        for number in range(len(self.chosen)):
            directory = directory_of(root, number)
            directory.mkdir()
            for name, inode in START.names.items():
                _lay_out_one(directory / name, number, inode)

    def perform(self, root: Path, number: int, mark: Mark) -> None:
        directory, steps = directory_of(root, number), self.chosen[number]
        after = trees(steps)
        for at, step in enumerate(steps, start=1):
            mark(f"{number}:{at}:begins")
            try:
                _take(step, directory, number, after[at], at + 1)
            except LackedError:
                return  # judged as if power was cut during this step
            mark(f"{number}:{at}:returned")

    def look(self, directory: Path) -> dict[str, Seen]:
        return contents(directory)

    usable = True

    def use(self, directory: Path) -> None:
        with (directory / PROBE).open("xb", buffering=0) as file:
            file.write(bytes(BLOCK_BYTES))
            os.fsync(file.fileno())
        for path in (directory / name for name in reversed(contents(directory))):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
        directory.rmdir()

    def judge(self, progress: Progress, seen: dict[str, Seen], promises: Promises) -> RunVerdict:
        history = self._history(progress, promises)
        return RunVerdict(
            findings=list(oracle.judge(history, seen)), lost=set(oracle.lost_operations(history, seen))
        )

    def promised(self, progress: Progress, promises: Promises) -> set[int]:
        return self._history(progress, promises).promising

    def _history(self, progress: Progress, promises: Promises) -> History:
        return History(
            number=progress.number, steps=self.chosen[progress.number], done=progress.done, begun=progress.begun,
            promises=promises,
        )  # fmt: skip

    def words(self, number: int) -> list[str]:
        return list(map(str, self.chosen[number]))

    def extent(self) -> dict[str, Any]:
        steps = (str(step) for steps in self.chosen for step in steps)
        return {
            "cache_drops": sum(text.startswith(operations.EVICT) for text in steps),
            "lengths": [
                {"operations": length, "tried": tried, "of": every}
                for length, (tried, every) in self.lengths.items()
            ],
        }

    def stored(self) -> dict[str, Any]:
        return {"sequences": [self.words(number) for number in range(len(self.chosen))]}

    @classmethod
    def loaded(cls, stored: Mapping[str, Any]) -> Sequences:
        """Restore stored sequences. ValueError for an invalid one."""
        return cls(chosen=tuple(bounded_sequences.parse(steps) for steps in stored["sequences"]))


def contents(directory: Path) -> dict[str, Seen]:
    """Return all names below a sequence's directory, with what they lead to: each directory, then what is in it.

    A recording of another machine can have directories of any depth.
    """
    found: dict[str, Seen] = {}
    left = [""]
    while left:
        below = left.pop()
        try:
            entries = sorted(os.scandir(directory / below), key=lambda entry: entry.name)
        except OSError as error:
            check_no_shortage(error)
            if below:
                found[below] = Seen(kind="directory", error=str(error))
            continue
        for entry in entries:
            name = f"{below}{entry.name}"
            try:
                found[name] = _entry(directory, name, entry)
            except OSError as error:
                check_no_shortage(error)
                found[name] = Seen(kind="file", error=error.strerror)
            if found[name].kind == "directory":
                left.append(f"{name}/")
    return dict(sorted(found.items(), key=lambda item: item[0].split("/")))


def _entry(directory: Path, name: str, entry: os.DirEntry[str]) -> Seen:
    status = entry.stat(follow_symlinks=False)
    inode, links = status.st_ino, status.st_nlink
    if entry.is_symlink():
        target = str((directory / name).readlink())
        return Seen(kind="symlink", target=target, inode=inode, links=links)
    if entry.is_dir(follow_symlinks=False):
        return _with(status, Seen(kind="directory", inode=inode))
    if stat.S_ISFIFO(status.st_mode):
        return _with(status, Seen(kind="fifo", inode=inode, links=links))
    with (directory / name).open("rb") as file:
        data, names = file.read(FILE_LIMIT_BYTES), os.listxattr(file.fileno())
        attribute = os.getxattr(file.fileno(), ATTRIBUTE) if ATTRIBUTE in names else None
    return _with(status, Seen(kind="file", data=data, inode=inode, links=links, attribute=attribute))


def _with(status: os.stat_result, seen: Seen) -> Seen:
    seconds, rest = divmod(status.st_mtime_ns, 10**9)
    return replace(seen, mode=status.st_mode & 0o777, owner=status.st_uid, time=-1 if rest else seconds)


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


def _take(step: Step, directory: Path, number: int, after: Tree, generation: int) -> None:
    if step.operation is not None:
        step.operation.run(directory, number, after, generation)
    else:
        synchronize(directory, step)


def synchronize(directory: Path, step: Step) -> None:
    """Call fsync or fdatasync on a file or directory, fsync on the sequence's directory, or syncfs."""
    if step.sync is Sync.SYNC:
        mounts.flush(directory)
        return
    where = directory / step.target if step.target else directory
    with opened(where) as descriptor:
        (os.fdatasync if step.sync is Sync.FDATASYNC else os.fsync)(descriptor)
