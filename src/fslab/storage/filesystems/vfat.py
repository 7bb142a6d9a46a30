"""FAT32 with long names, as used on cameras and memory sticks. mkfs.fat(8), Documentation/filesystems/vfat.rst."""

import shlex

from fslab.filesystem_abilities import Limits
from fslab.storage.filesystems import FileSystem, Made, _foreign, naming, options, valued
from fslab.system.tools import Tool


class Vfat(FileSystem):
    """A table of clusters, no journal, no owners, files below 4 GiB."""

    summary = "FAT32 with long names: no journal, no owners, files below 4 GiB"
    tools = (Tool(program="mkfs.vfat", package="dosfstools", version_argv=("--help",)),)
    mkfs = ("mkfs.vfat",)
    mount_type = "vfat"
    log_prefixes = ("FAT-fs", "vfat")
    made = Made(zero_tib_bytes=256 << 20)  # two tables
    min_size_bytes = 40 << 20  # FAT32 has at least 65525 clusters of 512 bytes, and two tables that list them
    limits = Limits(lacks=_foreign.FAT_LACKS, largest_file_bytes=(4 << 30) - 1)
    mkfs_flags = {
        **valued("-f -F -r -R -s -S"),
        **naming("-i -n"),
        **options("-a"),
    }
    mount_options = {
        **_foreign.MASK_OPTIONS,
        **options(
            "allow_utime=any codepage=int check=r|relaxed|n|normal|s|strict debug discard dos1xfloppy "
            "errors=continue|remount-ro flush nfs=stale_rw|nostale_ro? nonumtail quiet rodir "
            "shortname=lower|win95|winnt|mixed showexec sys_immutable time_offset=any tz=UTC uni_xlate "
            "usefree utf8=0|1?"
        ),
    }

    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:  # noqa: ARG002
        """Return ``mkfs.vfat -F 32 -I --mbr=n``, which accepts a whole disk and writes no partition table.

        It never discards.
        """
        words = shlex.split(options)
        kind = [] if any(word.startswith("-F") for word in words) else ["-F", "32"]
        return [*self.mkfs, *kind, "-I", "--mbr=n", *words, device]
