"""QEMU's programs for disk images, run as the user nobody: qemu-img makes and checks them, qemu-io reads and writes.
They work in the directory of the image, so that they need no right to pass through those above it.

An image from elsewhere must pass ``_untrusted_data.image_problem`` first: it can name other files, and servers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fslab.applications import _servers as servers
from fslab.errors import FslabError, ToolFailedError
from fslab.system import files, proc
from fslab.system.tools import Tool

IMG = Tool(program="qemu-img", package="qemu-utils")
IO = Tool(program="qemu-io", package="qemu-utils")
IMAGE = "image"
_PROMPT = b"qemu-io> "
_LEAKED = 3  # qemu-img(1), check: clusters that nothing uses, which harms no data


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """Bytes of an image that were written. ``start``: of the virtual disk; ``offset``: in the file."""

    start: int
    length: int
    offset: int


def create(directory: Path, disk_format: str, size_bytes: int, options: Mapping[str, object]) -> None:
    """Create an image in a directory, which is given to the user ``nobody``. ``options``: those of the format, or None
    for the default of one."""
    servers.own_directory(directory)
    told = ",".join(f"{name}={value}" for name, value in options.items() if value is not None)
    done = _img(directory, "create", ("-q", "-f", disk_format, "-o", told), str(size_bytes))
    if done.returncode != 0:
        raise ToolFailedError(f"qemu-img create: {_reason(done)}")


@contextmanager
def opened(directory: Path, disk_format: str, cache: str) -> Iterator[QemuIo]:
    """Open an image as a virtual machine does, with QEMU's cache mode, and close it."""
    argv = servers.confined(IO, "-f", disk_format, "-t", cache, IMAGE)
    with (
        files.memory_file("fslab-contents") as contents,
        servers.dialogue(argv, _PROMPT, inherit=(contents,), cwd=directory) as dialogue,
    ):
        qemu = QemuIo(dialogue, contents)
        qemu.say("")
        yield qemu
        qemu.end()


class QemuIo:
    """A running qemu-io(1): one request after the other."""

    def __init__(self, dialogue: servers.Dialogue, contents: int) -> None:
        self._dialogue, self._contents, self._length = dialogue, contents, 0

    def write(self, offset: int, data: bytes) -> None:
        os.pwrite(self._contents, data, 0)
        if len(data) != self._length:
            self._length = len(data)
            os.ftruncate(self._contents, self._length)
        self.say(f"write -q -s {servers.DESCRIPTORS}/{self._contents} {offset} {len(data)}")

    def read(self, offset: int, length: int) -> None:
        self.say(f"read -q {offset} {length}")

    def flush(self) -> None:
        self.say("flush")

    def say(self, command: str) -> None:
        """Do a command. qemu-io prints nothing for it unless it fails."""
        try:
            answer = self._dialogue.say(command)
        except servers.NoAnswerError as error:
            raise self._failure() from error
        if answer.strip():
            raise ToolFailedError(f"qemu-io: {answer.strip()}")

    def end(self) -> None:
        """Close the image, which writes what QEMU has in its own caches."""
        with suppress(servers.NoAnswerError):  # it ends
            self._dialogue.say("quit")
            raise self._failure()
        if self._dialogue.child.wait(servers.LIMIT_S) != 0:
            raise self._failure()

    def _failure(self) -> FslabError:
        ended = self._dialogue.child.wait(1)
        if ended is not None and ended < 0:
            return ToolFailedError(f"qemu-io was ended by signal {-ended}")
        why = self._dialogue.complaints().strip() or "no message"
        return ToolFailedError(f"qemu-io: {'does not answer' if ended is None else why}")


def bad_image(directory: Path) -> str | None:
    """Return what is wrong with the metadata of a qcow2 image; None: nothing that harms data."""
    done = _img(directory, "check", ("-q", "-f", "qcow2"))
    return None if done.returncode in {0, _LEAKED} else f"qemu-img check: {_reason(done)}"


def extents(directory: Path, disk_format: str) -> Iterator[Extent]:
    """Yield what was written to an image, and where it is in the file. DamagedError if QEMU cannot tell."""
    if disk_format == "raw":
        with files.opened(directory / IMAGE) as image:
            for start, end in files.data_regions(image):
                yield Extent(start=start, length=end - start, offset=start)
        return
    done = _img(directory, "map", ("--output=json", "-f", disk_format))
    if done.returncode != 0:
        raise servers.DamagedError(f"qemu-img map: {_reason(done)}")
    for each in json.loads(done.stdout):
        if each["data"] and not each["zero"]:
            yield Extent(start=each["start"], length=each["length"], offset=each["offset"])


def _img(directory: Path, command: str, words: Sequence[str], *more: str) -> proc.Completed:
    argv = servers.confined(IMG, command, *words, IMAGE, *more)
    return proc.answer(argv, timeout_s=servers.LIMIT_S, cwd=directory)


def _reason(done: proc.Completed) -> str:
    """Return the last line of what a program says."""
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    lines = (done.stderr + done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
    return lines[-1].removeprefix("qemu-img: ")
