"""A maildir, by Python's mailbox module: a message is written below ``tmp``, synced, and linked into ``new``.

The module syncs no directory (its ``_sync_close`` is an fsync of the message), so syncing it is a setting here.
"""

from __future__ import annotations

import mailbox
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Populated,
    RecoveredData,
    Settings,
    repeated,
    setting,
)
from fslab.filesystem_abilities import Ability
from fslab.storage.crash_promises import Promise, Promises
from fslab.system import mounts

BOX = "box"
_SEEN = ":2,S"  # cr.yp.to/proto/maildir.html
_MESSAGE_BYTES = 6 << 10  # the unused part of the last block, an inode, a name


class MaildirLoad(Populated):
    """A transaction is the delivery of one message, or what `operation` says. Afterwards all messages, and no others,
    must be as delivered."""

    laid_out = frozenset({"operation", "messages", "size"})
    amount, usual, made_per_s = "messages", 10_000, 10_000.0
    usual_rate, rates = 1000.0, {"read": 20_000.0}
    begins_empty, reading, writing = "deliver", frozenset({"read", "serve"}), frozenset({"deliver", "serve"})

    operation: Literal["deliver", "read", "serve"] = Field(
        "deliver",
        description="deliver a message; read a random one; or (serve) deliver a message, move it from `new` to `cur` "
        "as seen, read a random one, and delete the oldest one",
    )
    messages: int | None = Field(
        None, ge=2, le=100_000_000,
        description="messages in the mailbox before; default: 10,000 for `read` and `serve`, otherwise none",
    )  # fmt: skip

    @property
    def space_bytes(self) -> int:
        """A message is in base 64, in whole blocks."""
        messages = self.there + (self.most if self.writes else 0)
        return messages * (2 * self.size_bytes + _MESSAGE_BYTES)

    fsync_directory: Literal["no", "yes"] = setting(
        "no", "sync the directory of new messages after each delivery: without it, their names can be lost"
    )


class Maildir(DurableApplication):
    """A transaction is one delivered message."""

    summary = "maildir: messages are delivered, read, marked as seen and deleted"
    abilities = frozenset({Ability.COLON})  # of messages in `cur`
    Load = MaildirLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises.

        A message is complete once it has a name in ``new``. The name is durable if the directory is synced too.
        """
        durable = promises.directories if settings["fsync_directory"] == "yes" else _NO_NAME
        return Contract(durable=durable, consistent=_WHOLE)

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        mailbox.Maildir(directory / BOX, create=True).close()

    def prepare(self, drive: DriveRequest) -> None:
        """Make a mailbox of messages that were seen."""
        super().prepare(drive)
        for number in range(1, drive.load.there + 1):
            _seen(drive.directory, number).write_bytes(_message(number, drive.contents(number)))

    def drive(self, drive: DriveRequest) -> Driven:
        load = drive.load
        with self.opened(drive.directory, load.settings()) as deliver:
            driven = repeated(drive, _transaction(drive, deliver))
        first = driven.count + 1 if load.operation == "serve" else 1
        last = load.there + (driven.count if load.writes else 0)
        return self.verified(drive, driven, range(first, last + 1), "messages")

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Open one mailbox for all messages, as a delivery agent does."""
        box = mailbox.Maildir(directory / BOX, create=False)

        def deliver(number: int, contents: bytes) -> None:
            box.add(_message(number, contents))
            if settings["fsync_directory"] == "yes":
                mounts.sync(directory / BOX / "new")

        yield deliver
        box.close()

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Read the messages in ``new`` and ``cur``. Messages in ``tmp`` were not delivered."""
        found = set()
        try:
            for path in (path for name in ("new", "cur") for path in (directory / BOX / name).iterdir()):
                text = path.read_bytes()
                number = int(text.split(b"\n", 1)[0].removeprefix(b"Subject: ") or 0)
                if text != _message(number, contents(number)):
                    return RecoveredData(problem=f"message {number} has other contents than were delivered")
                found.add(number)
        except ValueError as error:
            return RecoveredData(problem=f"cannot read a message: {error}")
        return RecoveredData(transactions=frozenset(found))


_WHOLE = Promise(given=True, source="POSIX, fsync(): the message was synced before it had its name")
_NO_NAME = Promise(given=False, source="fsync(2): the directory entry needs an fsync of the directory")


def _seen(directory: Path, number: int) -> Path:
    return directory / BOX / "cur" / f"{number}.fslab{_SEEN}"


def _transaction(drive: DriveRequest, deliver: Callable[[int, bytes], None]) -> Callable[[int], object]:
    """Return what is done for each number. The paths are known, as a mail server knows them from its index."""
    there, box = drive.load.there, drive.directory / BOX
    kept = deque(_seen(drive.directory, number) for number in range(1, there + 1))
    random = drive.random()

    def delivered(number: int) -> None:
        deliver(there + number, drive.contents(there + number))

    def read(number: int) -> None:  # noqa: ARG001
        kept[random.randrange(len(kept))].read_bytes()

    def serve(number: int) -> None:
        delivered(number)
        for path in (box / "new").iterdir():
            kept.append(path.rename(box / "cur" / f"{path.name}{_SEEN}"))
        read(number)
        kept.popleft().unlink()

    return {"deliver": delivered, "read": read, "serve": serve}[drive.load.operation]


def _message(number: int, contents: bytes) -> bytes:
    return b"Subject: %d\n\n%s\n" % (number, b64encode(contents))
