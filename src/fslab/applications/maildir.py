"""A maildir, by Python's mailbox module: a message is written below ``tmp``, synced, and linked into ``new``.

The module syncs no directory (its ``_sync_close`` is an fsync of the message), so syncing it is a setting here.
"""

from __future__ import annotations

import mailbox
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from fslab.applications import Contract, DurableApplication, Records, RecoveredData, Settings, setting
from fslab.storage.promises import Promise, Promises
from fslab.system import mounts

BOX = "box"
_MESSAGE_BYTES = 6 << 10  # the unused part of the last block, an inode, a name


class MaildirLoad(Records):
    """A transaction is the delivery of one message. Afterwards all messages are read, and must be as delivered."""

    @property
    def guessed_rate(self) -> float:
        return 1000.0

    @property
    def space_bytes(self) -> int:
        """A message is in base 64, in whole blocks."""
        return self.most * (2 * self.size_bytes + _MESSAGE_BYTES)

    fsync_directory: Literal["no", "yes"] = setting(
        "no", "sync the directory of new messages after each delivery: without it, their names can be lost"
    )


class Maildir(DurableApplication):
    """A transaction is one delivered message."""

    summary = "maildir: delivery of messages"
    Load = MaildirLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises.

        A message is complete once it has a name in ``new``. The name is durable if the directory is synced too.
        """
        durable = promises.directories if settings["fsync_directory"] == "yes" else _NO_NAME
        return Contract(durable=durable, consistent=_WHOLE)

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        mailbox.Maildir(directory / BOX, create=True).close()

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
        """Read the messages in ``new``. Messages in ``tmp`` were not delivered."""
        found = set()
        try:
            for path in sorted((directory / BOX / "new").iterdir()):
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


def _message(number: int, contents: bytes) -> bytes:
    return b"Subject: %d\n\n%s\n" % (number, b64encode(contents))
