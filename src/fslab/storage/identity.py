"""The identity of a disk in a campaign's journal: after a crash, the same disk is found again, or none. Only reads."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fslab.storage import device_overlap, overwrite_check
from fslab.system import sysfs


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskIdentity:
    """``name``: a path. ``number``: ``major:minor``. ``sequence``: the kernel's ``diskseq``, which no other disk gets
    until the next boot; None on kernels before 5.15."""

    name: str
    number: str
    sequence: str | None

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the identity of the disk, or of the disk of the partition, that ``name`` leads to now."""
        return cls.at(name, Path(os.path.realpath(name)))

    @classmethod
    def at(cls, name: str, node: Path) -> Self:
        """Return the identity of the disk of a node that ``name`` led to. The name may lead elsewhere by now."""
        disk = device_overlap.disk(sysfs.block_directory(node))
        return cls(name=name, number=sysfs.device_number(node), sequence=sysfs.text(disk / "diskseq"))

    def node(self, *, rebooted: bool) -> Path | None:
        """Return the device's node; None if the name is gone, or leads to another disk.

        Numbers change with a boot. After one, only a stable name still means the same disk.
        """
        node = Path(os.path.realpath(self.name))
        if not node.is_block_device() or (rebooted and not self.name.startswith(overwrite_check.STABLE)):
            return None
        return node if rebooted or DiskIdentity.at(self.name, node) == self else None
