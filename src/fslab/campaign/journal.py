"""The journal of a campaign: what must be undone after a crash, on disk before it exists.

One append-only JSON-lines file per campaign, synced at each entry, locked while its campaign runs. Only
what stands in a journal is ever torn down. How each kind is undone stands in ``undo.py``.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from fslab.errors import BusyError
from fslab.system import paths


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One thing that we were about to create and have not undone yet."""

    id: str
    kind: str
    target: str


class CampaignJournal:
    """The open journal of one campaign; holding it open holds the campaign's lock.

    BusyError when another process has it open.
    """

    def __init__(self, campaign: str, directory: Path | None = None) -> None:
        self.campaign = campaign
        self.path = (directory or default_directory()) / f"{campaign}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise BusyError(
                f"campaign {campaign} is running in another process", where=str(self.path),
                hint="wait for it, or end it",
            ) from error  # fmt: skip
        self._count = len(self.path.read_text().splitlines())
        _sync_directory(self.path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def will_create(self, kind: str, target: str) -> str:
        """Record that ``target`` is about to be created; returns when that is on disk."""
        self._count += 1
        entry = f"{os.getpid()}-{self._count}"
        self._append({"id": entry, "kind": kind, "target": target})
        return entry

    def undone(self, entry: str) -> None:
        """Record that the entry's object is gone."""
        self._append({"undone": entry})

    def pending(self) -> list[Entry]:
        """What is not undone, in the order it was created."""
        return parse(self.path.read_text())

    def close(self) -> None:
        """Close it; the file goes when nothing is left to undo. Can be called twice."""
        if self._descriptor < 0:
            return
        if not self.pending():
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1

    def _append(self, line: dict[str, str]) -> None:
        os.write(self._descriptor, (json.dumps(line) + "\n").encode())
        os.fdatasync(self._descriptor)


def parse(text: str) -> list[Entry]:
    """Pending entries of a journal's text. A last line that a power loss cut short is dropped: what it would
    have named was not created yet."""
    entries: dict[str, Entry] = {}
    for line in text.splitlines():
        try:
            item = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "undone" in item:
            entries.pop(item["undone"], None)
        else:
            entries[item["id"]] = Entry(id=item["id"], kind=item["kind"], target=item["target"])
    return list(entries.values())


def leftover(directory: Path | None = None) -> Iterator[str]:
    """Ids of the campaigns that have a journal: running, or ended without undoing everything."""
    yield from sorted(path.stem for path in (directory or default_directory()).glob("*.jsonl"))


def default_directory() -> Path:
    """Where journals lie."""
    return paths.state() / "journal"


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
