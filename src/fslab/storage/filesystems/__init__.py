"""The contract of a file system: mkfs, mount type, options, tools, limits. One file per file system.

The file of a file system is declarative: it names the mkfs command, the options and the limits. It runs nothing.
"""

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fslab.abilities import Limits
from fslab.errors import nearest
from fslab.registry import Registry
from fslab.storage import Stripe
from fslab.storage.promises import Promises
from fslab.system.tools import Tool

# mount(8), "FILESYSTEM-INDEPENDENT MOUNT OPTIONS", without those that would hide the mount from us or
# have no meaning for a file system that lives for one trial (user, auto, remount, bind, …).
VFS_OPTIONS: Mapping[str, str] = {
    "defaults": "", "async": "", "sync": "", "dirsync": "", "atime": "", "noatime": "", "diratime": "",
    "nodiratime": "", "relatime": "", "norelatime": "", "strictatime": "", "nostrictatime": "", "lazytime": "",
    "nolazytime": "", "rw": "", "suid": "", "nosuid": "", "dev": "", "nodev": "", "exec": "", "noexec": "",
    "silent": "", "loud": "", "iversion": "", "noiversion": "",
}  # fmt: skip

ENDS_THE_MACHINE = re.compile(r"(?:^|[_-])(?:panic|reboot|oops|halt|poweroff)(?:$|[_-])")
WHOLE = re.compile(r"[0-9]{1,20}")
SIZE = re.compile(r"[0-9]{1,20}[kmgKMG]?")
# What a value of no declared form may be: names of character sets make the kernel load a module.
FREE = re.compile(r"[A-Za-z0-9_.:+*-]{1,255}")
# A value may be written right after its flag: -llogdev=…
ELSEWHERE = re.compile(r"(?:^|^-\w|,)\s*(?:device|logdev|rtdev|name|file)\s*=")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernels:
    """Which Linux versions have a file system: from ``since`` up to and with ``last``; None is no bound.

    ``outside``: who maintains it, where Linux itself never had it.
    """

    since: tuple[int, int] | None = None
    last: tuple[int, int] | None = None
    outside: str | None = None

    def why_missing(self, release: str) -> str | None:
        """Why a kernel of this release (``6.18.4-…``) lacks the file system; None: its version is not the reason."""
        if self.outside:
            return f"never in Linux itself: it comes from {self.outside}"
        found = re.match(r"(\d+)\.(\d+)", release)
        version = (int(found[1]), int(found[2])) if found else None
        if self.since and version and version < self.since:
            return f"new in {self.since[0]}.{self.since[1]}"
        if self.last and version and version > self.last:
            return f"last in {self.last[0]}.{self.last[1]}"
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionSwitch:
    """Options that enable a feature which a file system lacks by default."""

    mkfs: str = ""
    mount: str = ""

    def __str__(self) -> str:
        return ", ".join(f"{word} {options}" for word, options in self._written if options)

    @property
    def _written(self) -> tuple[tuple[str, str], ...]:
        return (("mkfs", self.mkfs), ("mount -o", self.mount))


class FileSystem(ABC):
    """One file system. ``name`` is set by the registry from the file's name.

    Below ``min_size_bytes`` mkfs refuses; below ``fair_size_bytes`` the size itself slows the file system down.
    ``limits`` is what it cannot do, ``refusal`` why fslab does not build it at all (None: it does), ``kernels``
    which Linux has it, ``switches`` which options bring what ``fslab features`` finds missing by default.
    ``mount_options`` maps an option's name to the form of its value: ``""`` none, ``"int"``, ``"size"``
    (4k), ``"any"``, or the allowed words joined by ``|``; a trailing ``?`` means that the value may be left
    out. ``mkfs_flags`` maps a flag of mkfs to ``""`` (no value) or ``"value"``.
    ``stripe_options`` are the words by which mkfs is told of stripes (none: it cannot be),
    ``no_stripe_options`` keep it from finding them by itself, and below ``aligned_min_size_bytes`` it refuses them.
    """

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]]
    mount_type: ClassVar[str]
    min_size_bytes: ClassVar[int]
    fair_size_bytes: ClassVar[int | None] = None
    limits: ClassVar[Limits] = Limits()
    refusal: ClassVar[str | None] = None
    kernels: ClassVar[Kernels] = Kernels()
    switches: ClassVar[Mapping[str, OptionSwitch]] = {}
    mount_options: ClassVar[Mapping[str, str]]
    mkfs_flags: ClassVar[Mapping[str, str]]
    stripe_options: ClassVar[tuple[str, ...]] = ()
    no_stripe_options: ClassVar[str] = ""
    aligned_min_size_bytes: ClassVar[int] = 0

    @abstractmethod
    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:
        """The mkfs command line for ``device``. Pure. ``discard`` False: it must not discard."""

    def aligned_options(self, stripe: Stripe, options: str) -> str:
        """The mkfs options that say how data is spread, beside the study's ``options``. Pure.

        ValueError where these leave open what has to be known for it.
        """
        raise NotImplementedError(f"{self.name} declares stripe_options: {stripe}, {options}")

    def mount_argv(self, options: str, device: str, target: str) -> list[str]:
        """The mount command line. Pure."""
        return ["mount", "-t", self.mount_type, "-o", options, device, target]

    def grow_argv(self, device: str, target: str) -> list[str] | None:  # noqa: ARG002
        """Grow it, mounted at ``target``, to the size that its device has now; None: there is no such command."""
        return None

    def shrink_argv(self, device: str, target: str, size_bytes: int) -> list[str] | None:  # noqa: ARG002
        """Shrink it, mounted at ``target``, to ``size_bytes``; None: there is no such command."""
        return None

    def promises(self, mount_options: Collection[str], superblock: bytes) -> Promises | None:  # noqa: ARG002
        """What it promises for a power cut with these mount options (as the kernel shows them) and features.

        ``superblock``: the first 128 KiB of its device. None: not declared. Pure.
        """
        return None

    def check_argv(self, image: str) -> list[str] | None:  # noqa: ARG002
        """Look for damage in an image that is not mounted, and change nothing; exit status 0: none. Pure."""
        return None

    def repair_argv(self, image: str) -> list[str] | None:  # noqa: ARG002
        """Repair an image that is not mounted, without asking. Pure."""
        return None

    def copy_mount_options(self, options: str) -> str:
        """The mount options with which a copy can be mounted beside the original, which has the same UUID. Pure."""
        return options

    def check_mkfs_options(self, options: str) -> None:
        """ValueError for an option that this mkfs does not have. Finds typing mistakes, not all errors."""
        try:
            words = shlex.split(options)
        except ValueError as error:
            raise ValueError(f"mkfs options '{options}': {error}") from error
        index = 0
        _refuse_ending_the_machine(self.name, " ".join(words))
        for word in words:
            _refuse_other_devices(self.name, word)
        while index < len(words):
            index += _check_flag(self.name, words[index], words[index + 1 :], self.mkfs_flags)

    def check_mount_options(self, options: str) -> None:
        """ValueError for a mount option that this file system does not have, or a value it cannot take."""
        _refuse_ending_the_machine(self.name, options)
        known = {**VFS_OPTIONS, **self.mount_options}
        for option in options.split(","):
            name, equals, value = option.strip().partition("=")
            if name not in known:
                raise ValueError(f"{self.name} has no mount option '{name}': {nearest(name, known)}")
            _check_value(name, value if equals else None, known[name])


def _refuse_ending_the_machine(filesystem: str, options: str) -> None:
    """Whatever a driver declares: an error of a file system must not stop the whole machine.

    Refused in guests too: there it would only cost a trial, but the same study runs on the host with ``--on``.
    """
    for word in re.split(r"[^\w-]+", options.lower()):
        attached = word[2:] if word.startswith("-") else word  # -epanic
        if ENDS_THE_MACHINE.search(word) or ENDS_THE_MACHINE.search(attached):
            raise ValueError(
                f"'{word}' of {filesystem} can stop the whole machine: fslab does not allow it on any file system"
            )


def _refuse_other_devices(filesystem: str, word: str) -> None:
    """An external log or a second device named here would be formatted without any of our checks."""
    if ELSEWHERE.search(word) or "/" in word:
        raise ValueError(
            f"mkfs option '{word}' of {filesystem} names another file or device: fslab does not allow it"
        )


def _check_flag(filesystem: str, flag: str, rest: list[str], known: Mapping[str, str]) -> int:
    """Check one flag and say how many words it took."""
    name = flag if flag.startswith("--") else flag[:2]
    name, _, attached = name.partition("=") if flag.startswith("--") else (name, "", flag[2:])
    if name not in known:
        raise ValueError(
            f"fslab does not know or allow the mkfs option '{flag}' of {filesystem}: {nearest(name, known)}"
        )
    if known[name] == "":
        if attached:
            raise ValueError(f"mkfs option '{name}' of {filesystem} takes no value, but has '{attached}'")
        return 1
    if attached or "=" in flag:
        return 1
    if not rest:
        raise ValueError(f"mkfs option '{name}' of {filesystem} needs a value")
    return 2


def _check_value(name: str, value: str | None, form: str) -> None:
    optional = form.endswith("?")
    form = form.removesuffix("?")
    if value is None or value == "":
        if form and not optional:
            raise ValueError(f"mount option '{name}' needs a value ({form})")
        return
    if not form:
        raise ValueError(f"mount option '{name}' takes no value, but has '{value}'")
    if form == "int" and not WHOLE.fullmatch(value):
        raise ValueError(f"mount option '{name}' takes a whole number, not '{value}'")
    if form == "size" and not SIZE.fullmatch(value):
        raise ValueError(f"mount option '{name}' takes a size such as 256k, not '{value}'")
    if form == "any" and not FREE.fullmatch(value):
        raise ValueError(f"mount option '{name}' takes letters, digits and '_.:+*-', not '{value}'")
    words: Collection[str] = form.split("|")
    listed = value.partition(":")[0] in words and FREE.fullmatch(value)
    if form not in {"int", "size", "any"} and not listed:
        raise ValueError(f"mount option '{name}' cannot be '{value}': {nearest(value, words)}")


REGISTRY: Registry[FileSystem] = Registry("file system", __name__, FileSystem, group="fslab.filesystems")
