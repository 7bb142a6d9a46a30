"""Limits of block devices, kept by the kernel's own throttle: so many requests and bytes per second, no more.

Documentation/admin-guide/cgroup-v1/blkio-controller.rst. At the root group, so that writeback is limited as well;
that group has such limits in version 1 only.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UnsupportedError
from fslab.system import mounts, sysfs

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """Per second, for reads and for writes each; None: none."""

    iops: int | None = None
    bytes_per_s: int | None = None

    def files(self) -> dict[str, int]:
        """The controller's files and what they take."""
        values = {"iops": self.iops, "bps": self.bytes_per_s}
        return {
            f"blkio.throttle.{way}_{kind}_device": value
            for way in ("read", "write")
            for kind, value in values.items()
            if value is not None
        }


@contextmanager
def limited(devices: Sequence[Path], limit: Limit, hierarchy: Path) -> Iterator[None]:
    """Limit each of the devices; ``hierarchy`` is an own directory to mount the controller on.

    UnsupportedError where the kernel has no such controller to be had.
    """
    hierarchy.mkdir(mode=0o700, exist_ok=True)
    if (
        mounts.at(hierarchy) is None
        and _libc.mount(b"fslab", os.fsencode(hierarchy), b"cgroup", 0, b"blkio") != 0
    ):
        raise UnsupportedError(
            f"the kernel has no blkio controller here: {os.strerror(ctypes.get_errno())}", where="model",
            hint="remove 'model', 'iops' and 'bandwidth' from the medium, or use a guest: --on uml",
        )  # fmt: skip
    numbers = [sysfs.device_number(device) for device in devices]
    try:
        for number in numbers:
            _write(hierarchy, number, limit.files())
        yield
    finally:
        for number in numbers:
            _write(hierarchy, number, dict.fromkeys(limit.files(), 0))
        mounts.unmount(hierarchy)
        hierarchy.rmdir()


def _write(hierarchy: Path, number: str, values: dict[str, int]) -> None:
    for name, value in values.items():
        (hierarchy / name).write_text(f"{number} {value}")
