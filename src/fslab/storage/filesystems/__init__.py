"""The interface of a file system: mkfs, mount type, options, tools, limits. One file per file system.

The file of a file system is declarative: it contains the mkfs command, the options and the limits. It runs nothing.
"""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from fslab.errors import nearest, similar
from fslab.filesystem_abilities import Ability, Limits, Needs
from fslab.registry import Registry
from fslab.storage import Stripe, filesystem_options
from fslab.storage.crash_promises import Promises
from fslab.system.tools import Tool

TIB = 1 << 40
T = TypeVar("T")


def options(words: str) -> dict[str, str]:
    """Return the options in a text such as ``acl noacl commit=int``: the form of the value of each."""
    return {name: form for name, _, form in (word.partition("=") for word in words.split())}


def of_each(table: Mapping[str, T]) -> dict[str, T]:
    """Return the table with one entry for each name in a key of several names."""
    return {name: value for names, value in table.items() for name in names.split()}


def valued(flags: str) -> dict[str, str]:
    """Return flags of mkfs, each with a value."""
    return dict.fromkeys(flags.split(), "value")


def naming(flags: str) -> dict[str, str]:
    """Return flags of mkfs that give a file system its UUID or its label."""
    return dict.fromkeys(flags.split(), filesystem_options.NAME)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernels:
    """The Linux versions that have a file system: from ``since`` up to and including ``last``; None: no bound.

    ``outside``: the source of the file system, if it was never part of Linux.
    """

    since: tuple[int, int] | None = None
    last: tuple[int, int] | None = None
    outside: str | None = None

    def why_missing(self, release: str) -> str | None:
        """Return why a kernel of this release (``6.18.4-…``) lacks the file system; None: not due to its version."""
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
    """The options that enable a feature which a file system lacks by default."""

    mkfs: str = ""
    mount: str = ""

    def __str__(self) -> str:
        written = (("mkfs", self.mkfs), ("mount -o", self.mount))
        return ", ".join(f"{word} {options}" for word, options in written if options)


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """What mkfs writes, measured with Debian 12's versions on sparse files of 256 MiB to 60 TiB, rounded up: bytes that
    are not all zeros, in pages of 4 KiB, and zeros (inode tables, a journal). ``…_tib_bytes``: for each TiB of size;
    ``zero_shares``: (size in bytes, share) from small to large, for each size from which on ``zero_tib_bytes`` is
    another, as a share of it. ``least_zero_bytes``, ``most_zero_bytes``: for a file system of any size.
    ``journal_bytes``: also zeros, of a journal that is at most a 128th of the file system, below 64 MiB a 32nd, below
    16 MiB an eighth. A small file system has less than ``data_bytes``, such as for the log of jfs.
    """

    data_bytes: int = 2 << 20
    data_tib_bytes: int = 0
    zero_tib_bytes: int = 0
    zero_shares: tuple[tuple[int, float], ...] = ()
    least_zero_bytes: int = 0
    most_zero_bytes: int = 1 << 60
    journal_bytes: int = 0

    def data(self, size_bytes: int) -> int:
        """Return the bytes that are not zeros."""
        return min(self.data_bytes, (8 << 20) + size_bytes // 100) + self.data_tib_bytes * size_bytes // TIB

    def zeros(self, size_bytes: int) -> int:
        """Return the bytes that are zeros."""
        share = [1.0, *(share for start_bytes, share in self.zero_shares if size_bytes >= start_bytes)][-1]
        tables = max(int(self.zero_tib_bytes * size_bytes // TIB * share), self.least_zero_bytes)
        journal = max(size_bytes // 128, min(size_bytes // 32, 64 << 20), min(size_bytes // 8, 16 << 20))
        return min(tables, self.most_zero_bytes) + min(journal, self.journal_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalElsewhere:
    """How a file system gets its journal on another device: ``make``, a command before mkfs, if it needs one, and the
    options of mkfs and mount."""

    mkfs: str
    mount: str
    make: tuple[str, ...] = ()


COMMANDS = "commands of the study"  # they can do anything to the file system


class FileSystem:
    """A file system. The registry sets ``name`` from the file's name.

    ``repair_needs_replay``: a full repair refuses a log that was not replayed. ``repaired_statuses``: exit statuses of
    a repair that succeeded. ``min_size_bytes``: mkfs refuses smaller devices. ``fair_size_bytes``: on a smaller device,
    the size itself slows the file system down. ``limits``: what it does not support. ``notice``: what a plan says of
    it. ``mount_type``: empty if nothing is mounted: the workload works on the device itself. ``mount_flags``: ``-i``
    where mount(8) must not call a helper. ``kernels``: the Linux versions that have it. ``switches``: the options that
    enable features which ``fslab features`` finds missing by default.

    ``mkfs``: the command before the options; ``mkfs_discards``, ``mkfs_keeps``: its words to discard, and not to.

    ``made``: what its mkfs writes without options (``made_with``). ``used_bytes``: in use when it is empty, at least.
    ``unfilled_bytes``: that files cannot take, at least. ``own_bytes``: the same of the device, without mkfs options;
    seen with Linux 6.1.

    ``module``: what installs its kernel module, where Linux itself does not have it. ``limits_before``: the version of
    its first tool since which ``limits`` no longer hold.

    ``mount_options`` maps an option's name to the form of its value: ``""`` for no value, ``"int"``, ``"size"`` (4k),
    ``"any"``, or the allowed words joined by ``|``. A trailing ``?`` means that the value is optional. ``mkfs_flags``
    maps a flag of mkfs to ``""`` (no value), ``"value"`` or ``NAME`` (refused); ``mkfs_words``: to words of its value
    that can be taken for mount options. ``listed_as``: how the kernel lists an option that it writes otherwise than the
    study; a ``=`` at the end: without a value. ``unlisted``: options, or names of them, that it leaves out of its list
    because they are the default (None: not known). ``unshown``: options of which its list tells nothing. ``overruled``
    maps an option that it lists, but does not follow, to what makes it so: listed options (or their names), attributes
    (``+C``), and, after ``^``, what is missing: also ``feature NAME``, ``a write cache`` of the disks, ``COMMANDS``, or
    all of several, joined by ``|``.
    ``removed_options`` maps an option that the kernel had, or still accepts without effect, to its history: since which
    version, and why.

    ``log_prefixes``: how the kernel's messages about it begin.

    ``stripe_options``: the words in mkfs options that set stripes (empty: mkfs cannot set stripes).
    ``no_stripe_options``: the options that keep mkfs from detecting stripes itself. ``aligned_min_size_bytes``: with
    stripe options, mkfs refuses smaller devices.

    ``feature_flags``: flags of mkfs whose values are lists of features (``-O a,^b``, ``-m crc=0``). ``feature_names``:
    features that ``feature_words`` names otherwise; "": not at all. ``kernel_features``: those that the kernel sets by
    itself, at a mount or at the first use: they are not what mkfs made, and when they are listed is up to chance.

    ``settled_options``: mount options that keep the kernel from working in the background after a mount, which every
    trial begins with; not used if the study sets one of them or of ``unsettled_options``, or if the kernel knows none.
    """

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]]
    mkfs: ClassVar[tuple[str, ...]]
    mkfs_discards: ClassVar[tuple[str, ...]] = ()
    mkfs_keeps: ClassVar[tuple[str, ...]] = ()
    mount_type: ClassVar[str]
    mount_flags: ClassVar[tuple[str, ...]] = ()
    min_size_bytes: ClassVar[int]
    fair_size_bytes: ClassVar[int | None] = None
    made: ClassVar[Made] = Made()
    used_bytes: ClassVar[int] = 0
    unfilled_bytes: ClassVar[int] = 0
    own_bytes: ClassVar[int] = 0
    notice: ClassVar[str] = ""
    limits: ClassVar[Limits] = Limits()
    limits_before: ClassVar[str | None] = None
    module: ClassVar[Tool | None] = None
    repair_needs_replay: ClassVar[bool] = False
    repaired_statuses: ClassVar[frozenset[int]] = frozenset({0})
    kernels: ClassVar[Kernels] = Kernels()
    log_prefixes: ClassVar[tuple[str, ...]] = ()
    switches: ClassVar[Mapping[str, OptionSwitch]] = {}
    mount_options: ClassVar[Mapping[str, str]]
    removed_options: ClassVar[Mapping[str, str]] = {}
    listed_as: ClassVar[Mapping[str, str]] = {}
    unlisted: ClassVar[frozenset[str] | None] = None
    unshown: ClassVar[frozenset[str]] = frozenset()
    overruled: ClassVar[Mapping[str, frozenset[str]]] = {}
    mkfs_flags: ClassVar[Mapping[str, str]]
    mkfs_words: ClassVar[Mapping[str, str]] = {}
    stripe_options: ClassVar[tuple[str, ...]] = ()
    no_stripe_options: ClassVar[str] = ""
    aligned_min_size_bytes: ClassVar[int] = 0
    feature_flags: ClassVar[tuple[str, ...]] = ()
    feature_names: ClassVar[Mapping[str, str]] = {}
    kernel_features: ClassVar[frozenset[str]] = frozenset()
    settled_options: ClassVar[tuple[str, ...]] = ()
    unsettled_options: ClassVar[tuple[str, ...]] = ()

    @property
    def imported(self) -> bool:
        """Whether it is imported before each mount, and exported after it, and after mkfs (``storage/zpool.py``).

        Its commands then get nodes of fslab's own instead of devices, ``/dev/fslab-CAMPAIGN-pool``: it is named after
        the first one.
        """
        return self.export_argv("") is not None

    @property
    def mounted(self) -> bool:
        """Whether it is mounted, and has files. Otherwise the workload works on the device itself."""
        return bool(self.mount_type)

    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:
        """Return the mkfs command line for ``device``. Without ``discard``, it must not discard. Pure.

        Empty: there is none.
        """
        about_discards = self.mkfs_discards if discard else self.mkfs_keeps
        return [*self.mkfs, *about_discards, *shlex.split(options), device]

    def aligned_options(self, stripe: Stripe, options: str) -> str:
        """Return the mkfs options that set the stripes, in addition to the study's ``options``. Pure.

        ValueError if ``options`` leave a needed value open, such as the block size.
        """
        raise NotImplementedError(f"{self.name} declares stripe_options: {stripe}, {options}")

    def external_journal(self, device: str, size_bytes: int, options: str) -> JournalElsewhere | None:  # noqa: ARG002
        """Return how its journal gets on another device; None: it cannot. ``options``: those of mkfs. Pure."""
        return None

    def features_argv(self, device: str, target: str) -> list[str] | None:  # noqa: ARG002
        """Return the command that lists the features of a mounted file system; None: there is no command. Pure."""
        return None

    def feature_words(self, output: str) -> frozenset[str]:  # noqa: ARG002
        """Return the features in the output of ``features_argv``; ``name=value`` for those that are always listed."""
        return frozenset()

    def sizes_made(self, output: str) -> Mapping[str, str]:  # noqa: ARG002
        """Return sizes in the output of ``features_argv`` that mkfs takes from a file of the machine."""
        return {}

    def mount_argv(self, options: str, device: str, target: str) -> list[str]:
        """Return the mount command line; empty if nothing is mounted. Pure."""
        return ["mount", *self.mount_flags, "-t", self.mount_type, "-o", options, device, target]

    def import_argv(self, devices: Sequence[str]) -> list[str] | None:  # noqa: ARG002
        """Return the command that imports it from exactly these devices, before a mount; None: there is none. Pure."""
        return None

    def export_argv(self, device: str) -> list[str] | None:  # noqa: ARG002
        """Return the command that exports it after it was unmounted. Pure."""
        return None

    def imported_argv(self, device: str) -> list[str] | None:  # noqa: ARG002
        """Return the command that prints the devices of an imported one of this name, and fails without one. Pure."""
        return None

    def grow_argv(self, device: str, target: str) -> list[str] | None:  # noqa: ARG002
        """Return the command that grows it, mounted at ``target``, to its device's current size; None: no command."""
        return None

    def shrink_argv(self, device: str, target: str, size_bytes: int) -> list[str] | None:  # noqa: ARG002
        """Return the command that shrinks it, mounted at ``target``, to ``size_bytes``; None: no command."""
        return None

    def promises(self, mount_options: Collection[str], superblock: bytes) -> Promises | None:  # noqa: ARG002
        """Return what it promises for a power cut. None: not declared. Pure.

        ``mount_options``: as the kernel shows them. ``superblock``: the first 128 KiB of the device, with its features.
        """
        return None

    def has_other_devices(self, mount_options: Collection[str], superblock: bytes) -> bool:  # noqa: ARG002
        """Return whether a part of it, such as its journal, is on another device. Arguments: as for ``promises``.

        That of XFS is an option that the kernel shows.
        """
        return any(option.startswith(("logdev=", "rtdev=")) for option in mount_options)

    def ends_the_machine(self, mount_options: Collection[str], superblock: bytes) -> bool:  # noqa: ARG002
        """Return whether an error of it stops the whole machine. Arguments: as for ``promises``."""
        return any(filesystem_options.ends_the_machine(self.name, ",".join(mount_options)))

    def why_not(self, needs: Needs, version: str | None = None) -> str | None:
        """Return why it does not meet the requirements of a workload; None if it does. ``version``: of its first tool;
        None: not known."""
        known = type(self).promises is not FileSystem.promises and self.check_argv("") is not None
        if Ability.PROMISES in needs.abilities and not known:
            return f"it needs {Ability.PROMISES}: fslab has those of ext2, ext3, ext4, xfs and btrfs only"
        if self.limits_before and version and _numbers(version) >= _numbers(self.limits_before):
            return None
        return self.limits.why_not(needs)

    def check_argv(self, image: str) -> list[str] | None:  # noqa: ARG002
        """Return the command that checks an unmounted image and changes nothing. Exit status 0: no damage. Pure."""
        return None

    def repair_argv(self, image: str) -> list[str] | None:  # noqa: ARG002
        """Return the command that repairs an unmounted image without asking. Pure."""
        return None

    def full_repair_argv(self, image: str) -> list[str] | None:  # noqa: ARG002
        """Return the command that rewrites the metadata of an unmounted image and keeps all data; None if there is no
        such repair. Pure."""
        return None

    def copy_mount_options(self, options: str) -> str:
        """Return the mount options for a copy that is mounted together with the original of the same UUID. Pure.

        Such a copy can be made from a recording of another machine: its device nodes, programs and links lead nowhere.
        """
        return f"{options},nodev,nosuid,noexec,nosymfollow"

    def check_mkfs_options(self, options: str) -> None:
        """Raise ValueError with all ``mkfs_mistakes``."""
        _raise_any(self.mkfs_mistakes(options))

    def check_mount_options(self, options: str) -> None:
        """Raise ValueError with all ``mount_mistakes``."""
        _raise_any(self.mount_mistakes(options))

    def made_with(self, options: str) -> Made:  # noqa: ARG002
        """Return what mkfs writes with these options of the study."""
        return self.made

    def mkfs_mistakes(self, options: str) -> list[str]:
        """Return what is wrong with mkfs options: those that this mkfs does not have, or that fslab does not allow.

        Finds typing mistakes, not all errors.
        """
        mounted = {**filesystem_options.VFS_OPTIONS, **self.mount_options}
        return filesystem_options.mkfs_mistakes(self.name, options, self.mkfs_flags, mounted)

    def mount_mistakes(self, options: str) -> list[str]:
        """Return what is wrong with mount options: those that this file system does not have, and invalid values."""
        if refused := list(filesystem_options.ends_the_machine(self.name, options)):
            return refused
        known = {**filesystem_options.VFS_OPTIONS, **self.mount_options}
        found: list[str] = []
        for option in options.split(","):
            name, equals, value = option.strip().partition("=")
            if not name:
                found.append(f"'{options}' has an empty mount option: delete a comma")
            elif why := equals and self.removed_options.get(option.strip()):
                found.append(f"mount option '{option.strip()}' of {self.name}: {why}")
            elif name in known:
                found += filesystem_options.value_mistakes(name, value if equals else None, known[name])
            else:
                found.append(
                    f"{self.name} has no mount option '{name}': {self._instead_of(option.strip(), known)}"
                )
        return found

    def _instead_of(self, option: str, known: Collection[str]) -> str:
        """Return why a mount option is unknown, or what may be meant. An option and its opposite are not similar."""
        name = option.partition("=")[0]
        if name in self.removed_options:
            return self.removed_options[name]
        for flag, words in self.mkfs_words.items():
            if name.lstrip("^") in words.split():
                return f"it is an option of mkfs: mkfs_options '{flag} {option}'"
        if why := filesystem_options.why_never(name):
            return why
        owners = [owner for owner, driver in REGISTRY if name in driver.mount_options]
        if owners := owners or [owner for owner, driver in REGISTRY if name in driver.removed_options]:
            return f"it is an option of {', '.join(owners)}"
        alike = [each for each in known if each.startswith("no") == name.startswith("no")]
        removed = [each for each in self.removed_options if each.startswith("no") == name.startswith("no")]
        meant = similar(name, [*alike, *removed])
        if meant is not None and meant in self.removed_options:
            return f"did you mean '{meant}'? {self.removed_options[meant]}"
        return nearest(name, alike)


def _numbers(version: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", version)]


def _raise_any(mistakes: list[str]) -> None:
    if mistakes:
        raise ValueError("; ".join(mistakes))


REGISTRY: Registry[FileSystem] = Registry("file system", __name__, FileSystem, group="fslab.filesystems")


# How messages of file systems begin that are no file system of fslab, by their type: they often name no device.
_NEVER_TESTED: Mapping[str, tuple[str, ...]] = {
    "squashfs": ("SQUASHFS",), "erofs": ("erofs",), "iso9660": ("ISOFS",), "ubifs": ("UBIFS",), "cifs": ("CIFS",),
    "nfs": ("NFS",), "nfs4": ("NFS",), "ceph": ("ceph", "libceph"), "gfs2": ("gfs2",), "ocfs2": ("ocfs2", "OCFS2"),
}  # fmt: skip


def others_in_log(mount_type: str | None) -> tuple[str, ...]:
    """Return how messages about all other file systems begin in the kernel's log."""
    known = [(driver.mount_type, driver.log_prefixes) for _, driver in REGISTRY] + list(_NEVER_TESTED.items())
    own = {prefix for kind, prefixes in known if kind == mount_type for prefix in prefixes}
    return tuple(sorted({prefix for _, prefixes in known for prefix in prefixes} - own))
