"""The lines of /proc/PID/mountinfo: Documentation/filesystems/proc.rst, 3.5. Imports nothing: all can use it."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

OWN = Path("/proc/self/mountinfo")
_OCTAL = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """One line. ``number``: the mount's id. ``device``: ``major:minor``. ``root``: the directory of the file system
    that is mounted on ``target``. ``propagation``: the optional fields, such as ``shared:2``. ``super_options``: of the
    file system, as written (with octal escapes)."""

    number: int
    device: str
    root: Path
    target: Path
    mount_options: str
    propagation: tuple[str, ...]
    filesystem: str
    source: str
    super_options: bytes

    @classmethod
    def of(cls, line: bytes) -> Self:
        """Return the mount of a line without its newline."""
        before, _, after = line.partition(b" - ")
        number, _, device, root, target, mount_options, *propagation = before.split(b" ")
        # The last field, whatever is in the name of the source: users choose that.
        filesystem, source, *_, super_options = after.split(b" ")
        return cls(
            number=int(number), device=device.decode(), root=_path(root), target=_path(target),
            mount_options=os.fsdecode(mount_options), propagation=tuple(map(os.fsdecode, propagation)),
            filesystem=os.fsdecode(filesystem), source=os.fsdecode(unescaped(source)), super_options=super_options,
        )  # fmt: skip

    @property
    def options(self) -> str:
        """Those of the mount, then those of the file system; comma-separated."""
        return f"{self.mount_options},{os.fsdecode(self.super_options)}"


def parse(text: bytes) -> list[Mount]:
    """Return all mounts in the text of a mountinfo file, in its order."""
    # Not splitlines(): names may contain form feeds and the like; the kernel escapes only blanks and newlines.
    return [Mount.of(line) for line in text.split(b"\n") if line]


def line_of(number: int, text: bytes) -> bytes | None:
    """Return the line of the mount with this id; None if there is none."""
    return next((line for line in text.split(b"\n") if line.startswith(b"%d " % number)), None)


def target_of(line: bytes) -> bytes | None:
    """Return the mount point of a line; None for an empty one."""
    return unescaped(line.split(b" ", 5)[4]) if line else None


def unescaped(text: bytes) -> bytes:
    """Decode space, tab, newline, backslash and other characters that the kernel writes as octal numbers."""
    return _OCTAL.sub(lambda found: bytes([int(found[1], 8)]), text) if b"\\" in text else text


def _path(written: bytes) -> Path:
    return Path(os.fsdecode(unescaped(written)))
