"""XFS: allocation groups, delayed logging. mkfs.xfs(8), Documentation/admin-guide/xfs.rst."""

import re
from collections.abc import Collection
from dataclasses import replace

from fslab.storage import Stripe
from fslab.storage.crash_promises import Promise, Promises, at_once, kept
from fslab.storage.filesystems import (
    TIB,
    FileSystem,
    JournalElsewhere,
    Made,
    OptionSwitch,
    naming,
    of_each,
    options,
    valued,
)
from fslab.system.tools import Tool
from fslab.units import parse_size

_LONG_NUMBERS = "64-bit inode numbers"
_GROUP_BYTES = 32 << 10  # the headers and the roots of the trees of an allocation group


class Xfs(FileSystem):
    """Journalled, extent-based; the device is divided into allocation groups."""

    summary = "journalled, extents, allocation groups, delayed logging"
    tools = (Tool(program="mkfs.xfs", package="xfsprogs", version_argv=("-V",)),)
    mkfs = ("mkfs.xfs", "-f", "-q")
    mkfs_keeps = ("-K",)  # do not discard
    mount_type = "xfs"
    repair_needs_replay = True
    log_prefixes = ("XFS", "xfs")
    # An allocation group for each TiB; zeros: the log, 1/2048, at least 64 MiB and at most 2 GiB.
    made = Made(
        data_tib_bytes=_GROUP_BYTES, zero_tib_bytes=512 << 20, least_zero_bytes=64 << 20, most_zero_bytes=2 << 30
    )  # fmt: skip
    used_bytes = 21 << 20  # seen: 22 MiB of 300 MiB, 47 MiB of 2 GiB
    # Blocks in reserve: 17 MiB of 300, 29 of 512. The log is 64 MiB only since xfsprogs 5.19, and counted for none.
    own_bytes = 16 << 20
    min_size_bytes = 300 << 20  # mkfs.xfs(8): refuses smaller devices since xfsprogs 5.19
    switches = {"quotas": OptionSwitch(mount="uquota")}
    stripe_options = ("su", "sw", "sunit", "swidth", "noalign")
    no_stripe_options = "-d noalign"  # else mkfs.xfs uses what the device reports, from 1 GiB on
    aligned_min_size_bytes = 640 << 20  # on a smaller one the log is too small (xfsprogs 6.1 refuses 512 MiB)
    mkfs_flags = valued("-b -d -i -l -m -n -s") | naming("-L")
    # mkfs.xfs(8). Of sunit and swidth, it has another meaning than mount: they are mount options, too.
    mkfs_words = {
        "-m": "bigtime crc finobt inobtcount metadir reflink rmapbt",
        "-d": "agcount agsize cowextsize rtinherit su sw",
        "-i": "exchange maxpct nrext64 perblock projid32bit sparse",
        "-l": "lazy-count",
        "-n": "ftype parent",
    }
    mount_options = options(
        "allocsize=size attr2 noattr2 dax=always|never|inode? discard nodiscard grpid nogrpid "
        "bsdgroups sysvgroups filestreams ikeep noikeep inode32 inode64 largeio nolargeio "
        "logbufs=2|3|4|5|6|7|8 logbsize=size noalign norecovery nouuid noquota uquota usrquota quota "
        "uqnoenforce qnoenforce gquota grpquota gqnoenforce pquota prjquota pqnoenforce sunit=int "
        "swidth=int swalloc wsync max_open_zones=int lifetime nolifetime max_atomic_write=size"
    )

    # Documentation/admin-guide/xfs.rst, "Removed Mount Options".
    removed_options = of_each(
        {
            "barrier nobarrier": "removed in Linux 4.19: XFS always flushes the cache of a disk that has a "
            "volatile one",
            "delaylog nodelaylog": "removed in Linux 4.0: XFS always uses delayed logging (since 2.6.39)",
            "ihashsize": "removed in Linux 4.0: the kernel sizes its cache of inodes itself",
            "irixsgid": "removed in Linux 4.0: it is the sysctl fs.xfs.irix_sgid_inherit",
            "osyncisdsync osyncisosync": "removed in Linux 4.0: O_SYNC and O_DSYNC are what POSIX defines",
        }
    )

    # fs/xfs/xfs_super.c, xfs_fs_show_options; seen with Linux 6.1 and 6.18.
    listed_as = {
        "bsdgroups": "grpid", "sysvgroups": "nogrpid", "dax": "dax=always",
        "uquota": "usrquota", "quota": "usrquota", "qnoenforce": "uqnoenforce", "gquota": "grpquota",
        "pquota": "prjquota",
    }  # fmt: skip
    unlisted = frozenset(
        {
            "attr2", "dax=inode", "lifetime", "max_atomic_write=0",
            "nodiscard", "nogrpid", "noikeep", "nolargeio", "sunit=0", "swidth=0",
        }
    )  # fmt: skip

    def made_with(self, options: str) -> Made:
        """Return what mkfs.xfs writes with the study's allocation groups and a log of its size (in bytes); a log of
        another unit is not counted."""
        made = self.made
        if groups := _value("d", "agcount", options):
            made = replace(made, data_bytes=made.data_bytes + groups * _GROUP_BYTES)
        if size := _value("d", "agsize", options):
            made = replace(made, data_tib_bytes=TIB // size * _GROUP_BYTES)
        if (log := _value("l", "size", options)) is None:
            return made
        return replace(made, zero_tib_bytes=TIB if log else 0, least_zero_bytes=0, most_zero_bytes=log)

    # fs/xfs/xfs_iops.c, xfs_stat_blksize (seen with Linux 6.18), and libxfs/xfs_bmap.c. Documentation/admin-guide/
    # xfs.rst: noalign needs alignment from mkfs, and inode32 inode numbers of more than 32 bits.
    overruled = of_each(
        {
            "largeio": frozenset({"^swidth|allocsize"}),
            "swalloc": frozenset({"^swidth"}),
            "noalign": frozenset({"feature swidth=0"}),
            "inode32 inode64": frozenset({f"^feature {_LONG_NUMBERS}"}),
            "dax": frozenset({"^a disk with DAX"}),
        }
    )

    feature_flags = ("-m", "-i", "-n")

    def features_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        return ["xfs_info", target]

    def feature_words(self, output: str) -> frozenset[str]:
        """Return its words such as ``reflink=1``, and whether an inode number can have more than 32 bits."""
        words = frozenset(re.findall(r"\b[a-z0-9]+=[01]\b", output))
        return words | {_LONG_NUMBERS} if _has_long_numbers(output) else words

    def aligned_options(self, stripe: Stripe, options: str) -> str:  # noqa: ARG002
        """Return ``-d su=…,sw=…``. mkfs.xfs derives the log's stripe unit from it."""
        return f"-d su={stripe.chunk_bytes},sw={stripe.data_disks}"

    def external_journal(self, device: str, size_bytes: int, options: str) -> JournalElsewhere:  # noqa: ARG002
        """Return ``-l logdev=…,size=…``, and ``logdev`` for mount."""
        return JournalElsewhere(mkfs=f"-l logdev={device},size={size_bytes}", mount=f"logdev={device}")

    def grow_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        """Return ``xfs_growfs -d``, which takes the mount point."""
        return ["xfs_growfs", "-d", target]

    def shrink_argv(self, device: str, target: str, size_bytes: int) -> list[str]:  # noqa: ARG002
        """Return ``xfs_growfs -D``, in blocks of 4 KiB. The kernel only removes part of the last allocation group."""
        return ["xfs_growfs", "-D", str(size_bytes >> 12), target]

    def promises(self, mount_options: Collection[str], superblock: bytes) -> Promises:  # noqa: ARG002
        """Return the promises: the log keeps metadata in order; only fsync keeps contents.

        No option weakens this: Linux 4.19 removed ``nobarrier``.
        """
        log = kept("Documentation/filesystems/xfs/xfs-delayed-logging-design.rst: ordered, atomic")
        synced = kept("fs/xfs/xfs_file.c: fsync forces the log up to the inode's last change")
        return Promises(
            consistent=log,
            names=synced,
            attributes=kept(f"{synced.source}; fstests generic/066"),
            directories=log,
            removal=synced,
            rename=log,
            replace=Promise(given=False, source="XFS FAQ: why do I see binary NULLS in some files"),
            unexposed=kept("fs/xfs/xfs_iomap.c: new extents are unwritten until data is there"),
            at_once=at_once(mount_options, "wsync", "xfs(5)"),
        )

    def check_argv(self, image: str) -> list[str]:
        return ["xfs_repair", "-n", "-f", image]

    def repair_argv(self, image: str) -> list[str]:
        """Return ``xfs_repair -L``, which discards a log that cannot be replayed."""
        return ["xfs_repair", "-L", "-f", image]

    def full_repair_argv(self, image: str) -> list[str]:
        """Return ``xfs_repair``, which rebuilds the trees of each allocation group. It refuses an unreplayed log."""
        return ["xfs_repair", "-f", image]

    def copy_mount_options(self, options: str) -> str:
        """Add ``nouuid``, because XFS refuses a second file system with the same UUID."""
        return f"{super().copy_mount_options(options)},nouuid"


_SIZES = ("isize", "agcount", "agsize", "bsize")


def _value(flag: str, name: str, options: str) -> int | None:
    """Return a number or size among mkfs options; 0 for one in another unit than bytes, None if it is not given."""
    found = re.search(rf"(?<!\S)-{flag}\s*\S*\b{name}=(\w+)", options)
    if found is None:
        return None
    try:
        return parse_size(found[1])
    except ValueError:
        return 0


def _has_long_numbers(info: str) -> bool:
    """Return whether the number of the last inode has more than 32 bits, given what xfs_info prints; false if that is
    not known. Source: fs/xfs/xfs_super.c, xfs_set_inode_alloc."""
    found = re.findall(rf"\b({'|'.join(_SIZES)})=(\d+)", info)
    sizes = dict(reversed(found))  # of several block sizes, the data's come first
    if len(sizes) < len(_SIZES):
        return False
    inode, groups, blocks, block = (int(sizes[each]) for each in _SIZES)
    numbers = 1 << (blocks - 1).bit_length()  # of blocks, that each group has
    return ((groups - 1) * numbers + blocks - 1) * (block // inode) >= 1 << 32
