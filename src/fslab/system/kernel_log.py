"""The kernel's log: new messages, and to which device a message belongs.

Reads ``/dev/kmsg`` without removing records (Documentation/ABI/testing/dev-kmsg). Judges nothing.
"""

import os
import re
import weakref
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from fslab.errors import ToolFailedError
from fslab.system import mounts, proc, sysfs

KMSG = Path("/dev/kmsg")
WARNING = 4  # include/linux/kern_levels.h; 3: an error, 6: information
_RECORD = re.compile(r"^(\d+),\d+,\d+,[^;]*;(.*)$")
_RECORD_BYTES = 8192  # longest record: PRINTKRB_RECORD_MAX is 1024 before 6.5, PRINTK_MESSAGE_MAX 2048 since
# Names of block devices (Documentation/admin-guide/devices.txt). jbd2 appends the inode of its journal: loop3-8.
_DEVICE = re.compile(
    r"\b(?:z?ram\d+|(?:[shv]d|xvd|ubd|dasd|scm)[a-z]+\d*|dm-\d+|cciss!c\d+d\d+(?:p\d+)?|pmem\d+(?:\.\d+)?s?(?:p\d+)?"
    r"|(?:nvme\d+(?:c\d+)?n|mmcblk|loop|r?nbd|md_?d?|drbd|rbd|zd|bcache|nullb|ublkb|mtdblock|fd|sr)\d+(?:p\d+)?)\b"
)
# Where a message has the name of a device, of whatever kind: "I/O error, dev mmcblk0boot0, sector", "(device md_home)",
# "EXT4-fs (md_home): ", "md/raid1:md_home: ", and with the inode of the journal in those of jbd2. Those of dm have its
# number: "device-mapper: thin: 253:3: ".
_NAMED = re.compile(
    r"\bdev ([^\s,]+),|\(device ([^\s)]+)|^[\w-]+ \(([^\s)]+)\): |^md/\w+:([^\s:]+): "
    r"|^(?:Aborting journal on device|JBD2: .*?\bfor) (\S+)-\d+\b"
)
_DM_NUMBER = re.compile(r"^device-mapper: [^:]+: \d+:(\d+): ")
_NO_REASON = re.compile(r"callbacks suppressed|Deprecated parameter")


class Message(NamedTuple):
    """One record of the log. ``level``: 0 (emergency) to 7 (debug)."""

    level: int
    text: str


class KernelMessages:
    """The messages that are logged after it was opened. Each message is returned once."""

    def __init__(self, source: Path = KMSG) -> None:
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        os.lseek(self._descriptor, 0, os.SEEK_END)
        weakref.finalize(self, os.close, self._descriptor)

    def read(self) -> bytes | None:
        """Return the new records as they are, in some microseconds; None if the log may not be read."""
        if self._descriptor is None:
            return None
        chunks: list[bytes] = []
        while True:
            try:
                chunk = os.read(self._descriptor, _RECORD_BYTES)
            except BrokenPipeError:
                continue  # the record was overwritten; the next read returns the oldest record left
            except OSError:
                return b"".join(chunks)  # EAGAIN: no more
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)

    def messages(self) -> list[Message]:
        """Return the new messages; none if the log may not be read."""
        return parse(self.read() or b"")


def parse(log: bytes) -> list[Message]:
    """Return the kernel's messages among records of ``/dev/kmsg``, the oldest first, without those of programs."""
    # Lines that start with a blank continue a record with its key=value pairs.
    matches = (_RECORD.match(line) for line in log.decode("utf-8", "replace").splitlines())
    # The number in front is 8 × the facility + the level; that of the kernel is 0.
    return [Message(int(match[1]), match[2]) for match in matches if match and int(match[1]) < 8]


def belongs(
    text: str, devices: Collection[str], below: Collection[str] = (), others: tuple[str, ...] = ()
) -> bool:
    """Return whether a message is about these devices, or about no particular device.

    ``below``: the devices that they lie on. ``others``: how the messages of other file systems begin: such a message
    belongs only if it is about a device below.
    """
    named = _named(text)
    if named & set(below):
        return True
    return (not named or bool(named & set(devices))) and not text.startswith(others)


def _named(text: str) -> set[str]:
    """Return the kernel names of the devices in a message."""
    placed = {name for names in _NAMED.findall(text) for name in names if name}
    return {*_DEVICE.findall(text), *placed, *(f"dm-{number}" for number in _DM_NUMBER.findall(text))}


def below(devices: Collection[str]) -> tuple[str, ...]:
    """Return the devices on which these lie: disks of partitions, parts of volumes, and the disks of loop images."""
    found: dict[str, None] = {}
    left = list(devices)
    while left:
        for name in mounts.lower_devices(left.pop()):
            if name not in found:
                found[name] = None
                left.append(name)
    return tuple(name for name in found if name not in devices)


def about(messages: Iterable[Message], argv: Iterable[str]) -> list[Message]:
    """Return the messages about the devices that command lines name, those below them, devices of device-mapper and md
    that have no disks (their commands name volumes; they exist no longer, or were never complete), or no device."""
    devices = {Path(os.path.realpath(word)).name for word in argv if word.startswith("/dev/")}
    related = below(devices)
    return [
        message
        for message in messages
        if belongs(message.text, {*devices, *filter(_has_no_disks, _named(message.text))}, related)
    ]


def _has_no_disks(name: str) -> bool:
    return name.startswith(("dm-", "md")) and not any((sysfs.SYS / "class/block" / name / "slaves").glob("*"))


def reasons(messages: Iterable[Message], done: proc.Completed) -> list[str]:
    """Return why a command failed: the kernel's errors and warnings about the devices that it names. If there are none
    and the command refers to the log, other messages: the kernel also refuses at the level of information."""
    found = [message for message in about(messages, done.argv) if not _NO_REASON.search(message.text)]
    serious = [message for message in found if message.level <= WARNING]
    chosen = serious or (found if proc.SEE_LOG in done.stderr else [])
    return list(dict.fromkeys(message.text for message in chosen))


def run(argv: Sequence[str], *, failure: type[ToolFailedError], timeout_s: float) -> proc.Completed:
    """Run a command as ``proc.run`` does. The error also has the kernel's reasons."""
    log = KernelMessages()
    done = proc.run(argv, check=False, timeout_s=timeout_s)
    if done.returncode != 0:
        raise proc.failed(done, failure, reasons(log.messages(), done))
    return done
