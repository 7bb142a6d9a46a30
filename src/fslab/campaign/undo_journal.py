"""The journal of a campaign: what must be undone after a crash. An entry is on disk before its object exists.

One append-only JSON-lines file per campaign, synced at each entry, locked while the campaign runs. Only what a journal
lists is ever removed. ``cleanup`` defines how each kind is undone.
"""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from fslab import untrusted_text
from fslab.errors import BusyError, UnsafeError
from fslab.names import is_word
from fslab.storage.named_devices import DiskIdentity
from fslab.system import files, memory, mountinfo, mounts, paths, sysfs

LOOK_S = 0.1
FILES = frozenset({"image", "tree"})  # kinds of entries that can lie on a disk that is not mounted later


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalEntry:
    """An object that fslab was about to create and has not undone. ``boot``: the boot id at that time. ``devices``: the
    existing devices that it was made on. ``place``: where the file system of a file is mounted; None: in memory."""

    id: str
    kind: str
    target: str
    boot: str | None = None
    devices: tuple[DiskIdentity, ...] = ()
    place: str | None = None

    @property
    def rebooted(self) -> bool:
        """Whether the machine was started again since."""
        return self.boot not in {None, "", boot()}

    def nodes(self) -> list[Path]:
        """Return the nodes of those devices that are there and still the same disks."""
        found = (each.node(rebooted=self.rebooted) for each in self.devices)
        return [node for node in found if node is not None]


class CampaignJournal:
    """The open journal of one campaign. While it is open, it holds the campaign's lock.

    BusyError if another process has it open. UnsafeError if the file is not our user's own: another user could have
    written it, and what it names is deleted.
    """

    def __init__(self, campaign: str, directory: Path | None = None) -> None:
        if not is_word(campaign):
            raise UnsafeError("is not a valid campaign id", where=repr(campaign))
        self.campaign = campaign
        self.path = (directory or default_directory()) / f"{campaign}.jsonl"
        files.make_directories(self.path.parent, 0o700)
        self._descriptor = -1
        while self._descriptor < 0:
            self._descriptor = _locked(self.path)
        content = self._content()
        self._count = content.count(b"\n")
        # Remove a line that a power loss cut short: an entry appended to it would be lost with it.
        os.ftruncate(self._descriptor, content.rfind(b"\n") + 1)
        mounts.sync(self.path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:
        """Record that ``target`` is about to be created. Returns the entry's id once the entry is on disk."""
        self._count += 1
        entry = f"{os.getpid()}-{self._count}"
        item: dict[str, Any] = {"id": entry, "kind": kind, "target": target, "boot": boot() or ""}
        if known := [asdict(DiskIdentity.of(name)) for name in devices]:
            item["devices"] = known
        if (
            kind in FILES
            and (on := mountinfo.containing(Path(target).parent)).filesystem not in memory.FILE_SYSTEMS
        ):
            item["place"] = str(on.target)
        self._append(item)
        return entry

    @property
    def mark(self) -> str:
        """The mark of the campaign's processes: a secret, so that no other process can be taken for one of them."""
        if (known := self.known_mark()) is not None:
            return known
        made = secrets.token_hex(16)
        self._append({"mark": made})
        return made

    def known_mark(self) -> str | None:
        """Return the mark; None if no process was started with it."""
        for line in self._content().decode("utf-8", "replace").splitlines():
            with contextlib.suppress(ValueError):
                match untrusted_text.json_of(line):
                    case {"mark": str(found)} if found:
                        return found
        return None

    def undone(self, entry: str) -> None:
        self._append({"undone": entry})

    def pending(self) -> list[JournalEntry]:
        """Return the entries that are not undone, in the order of creation."""
        return parse(self._content().decode("utf-8", "replace"))

    def close(self) -> None:
        """Close the journal; delete its file if nothing is left to undo. Can be called twice."""
        if self._descriptor < 0:
            return
        if not self.pending():
            # Refused for example after chattr +a. With nothing left to undo, a later clean removes it.
            with contextlib.suppress(OSError):
                self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = -1

    def _append(self, line: dict[str, Any]) -> None:
        data = (json.dumps(line) + "\n").encode()
        before = os.fstat(self._descriptor).st_size
        with files.named(self.path):
            written = os.write(self._descriptor, data)
            if written == len(data):
                os.fdatasync(self._descriptor)
                return
        os.ftruncate(self._descriptor, before)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def _content(self) -> bytes:
        # Through the descriptor: the name may lead to another file by now.
        return os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)


def parse(text: str) -> list[JournalEntry]:
    """Return the pending entries of a journal's text.

    A line that a power loss cut short or garbled is skipped: the object that it names was not created yet.
    """
    entries: dict[str, JournalEntry] = {}
    for line in text.splitlines():
        try:
            item = untrusted_text.json_of(line)
        except ValueError:
            continue
        match item:
            case {"undone": str(entry)}:
                entries.pop(entry, None)
            case {"id": str(entry), "kind": str(kind), "target": str(target)}:
                entries[entry] = JournalEntry(
                    id=entry, kind=kind, target=target, boot=_text(item, "boot"), place=_text(item, "place"),
                    devices=tuple(_devices(item.get("devices"))),
                )  # fmt: skip
    return list(entries.values())


def _text(item: Mapping[str, Any], name: str) -> str | None:
    found = item.get(name)
    return found if isinstance(found, str) else None


def _devices(found: Any) -> Iterator[DiskIdentity]:
    for each in found if isinstance(found, list) else []:
        match each:
            case {"name": str(name), "number": str(number), "sequence": None | str() as sequence}:
                yield DiskIdentity(name=name, number=number, sequence=sequence)


def leftover(directory: Path | None = None) -> Iterator[str]:
    """Yield the ids of campaigns that have a journal: they are running, or ended without undoing everything."""
    names = (path.stem for path in (directory or default_directory()).glob("*.jsonl"))
    yield from sorted(name for name in names if is_word(name))


def is_running(campaign: str, directory: Path | None = None) -> bool:
    """Return whether a process of this user runs the campaign now. A killed process has released the lock."""
    if not is_word(campaign):
        return False
    path = (directory or default_directory()) / f"{campaign}.jsonl"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with files.closed_after(descriptor):
        return not files.locked(descriptor, fcntl.LOCK_SH)


def boot() -> str | None:
    """Return the id of the machine's current boot."""
    return sysfs.text(Path("/proc/sys/kernel/random/boot_id"))


def default_directory() -> Path:
    return paths.state() / "journal"


def _locked(path: Path) -> int:
    """Return the descriptor of our own, locked journal; -1 if its last owner removed the file meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except (PermissionError, IsADirectoryError, FileExistsError) as error:
        raise _not_ours(path) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_ours(path) from error
        raise
    try:
        # Whoever looks whether the campaign runs locks the journal for a moment.
        if not files.locked(descriptor, wait_s=LOOK_S):
            raise BusyError(
                f"campaign {path.stem} is running in another process",
                where=str(path),
                hint="wait until it ends, or stop it with Ctrl-C",
            )
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise _not_ours(path)
        if path.exists() and os.path.samestat(found, path.stat()):
            descriptor, locked = -1, descriptor
            return locked
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return -1


def _not_ours(path: Path) -> UnsafeError:
    return UnsafeError(
        "not used: this journal belongs to another user, or other users can write to it",
        where=str(path),
        hint="let its owner run fslab clean, or remove the file",
    )
