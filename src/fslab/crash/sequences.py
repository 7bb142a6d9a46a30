"""Short sequences of operations as a source: perform, read back, and judge them by the model of a directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fslab.crash import bounded, oracle, perform
from fslab.crash.contents import ATTRIBUTE
from fslab.crash.history import History
from fslab.crash.oracle import Seen
from fslab.crash.sources import Mark, Progress, Source, Verdict
from fslab.crash.steps import Sequence
from fslab.storage.promises import Promises

FILE_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequences(Source[dict[str, Seen]]):
    """Each sequence is a run."""

    chosen: tuple[Sequence, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(map(len, self.chosen))

    def lay_out(self, root: Path) -> None:
        perform.lay_out(root, len(self.chosen))

    def perform(self, root: Path, number: int, mark: Mark) -> None:
        perform.perform(root, number, self.chosen[number], mark)

    def look(self, directory: Path) -> dict[str, Seen]:
        return contents(directory)

    def judge(self, progress: Progress, seen: dict[str, Seen], promises: Promises) -> Verdict:
        history = self._history(progress, promises)
        return Verdict(
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

    def stored(self) -> dict[str, Any]:
        return {"sequences": [self.words(number) for number in range(len(self.chosen))]}

    @classmethod
    def loaded(cls, stored: Mapping[str, Any]) -> Sequences:
        """Restore stored sequences. ValueError for an invalid one."""
        return cls(chosen=tuple(bounded.parse(steps) for steps in stored["sequences"]))


def contents(directory: Path, below: str = "") -> dict[str, Seen]:
    """Return all names below a sequence's directory, with what they lead to."""
    found: dict[str, Seen] = {}
    try:
        entries = sorted(os.scandir(directory / below), key=lambda entry: entry.name)
    except OSError as error:
        return {below: Seen(kind="directory", error=str(error))} if below else {}
    for entry in entries:
        name = f"{below}{entry.name}"
        try:
            found |= _entry(directory, name, entry)
        except OSError as error:
            found[name] = Seen(kind="file", error=error.strerror)
    return found


def _entry(directory: Path, name: str, entry: os.DirEntry[str]) -> Mapping[str, Seen]:
    if entry.is_symlink():
        return {name: Seen(kind="symlink", target=str((directory / name).readlink()))}
    if entry.is_dir(follow_symlinks=False):
        return {name: Seen(kind="directory"), **contents(directory, f"{name}/")}
    with (directory / name).open("rb") as file:
        data, names = file.read(FILE_LIMIT_BYTES), os.listxattr(file.fileno())
        attribute = os.getxattr(file.fileno(), ATTRIBUTE) if ATTRIBUTE in names else None
        return {name: Seen(kind="file", data=data, attribute=attribute)}
