"""md RAID 1: each disk contains all data. md(4), mdadm(8)."""

from collections.abc import Mapping
from typing import ClassVar

from fslab.storage.layouts import _md


class MdRaid1Options(_md.Bitmapped):
    """A mirror has no chunk, because all disks contain the same data."""

    without: ClassVar[Mapping[str, str]] = {
        "chunk": "a mirror has no chunk, because all disks hold the same data"
    }


class MdRaid1(_md.Md[MdRaid1Options]):
    """A mirror, created with `--assume-clean`, so that no synchronisation runs during a trial."""

    summary = "md RAID 1: mirrored"
    modules = ("raid1",)
    level = 1
    redundant = True
    Options = MdRaid1Options

    def stripe(self, options: MdRaid1Options) -> None:  # noqa: ARG002
        return

    def usable_bytes(self, options: MdRaid1Options, disk_bytes: int) -> int:  # noqa: ARG002
        return _md.usable_bytes(disk_bytes)
