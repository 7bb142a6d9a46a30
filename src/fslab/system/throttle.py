"""Limit the requests and bytes per second of block devices with the kernel's own throttle.

Documentation/admin-guide/cgroup-v1/blkio-controller.rst. The limits are on the root group, so that writeback is limited
as well; the root group can have such limits in cgroup version 1 only.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UnsupportedError
from fslab.system import mounts, sysfs

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """Limits per second, for reads and for writes separately; None: no limit."""

    iops: int | None = None
    bytes_per_s: int | None = None

    def files(self) -> dict[str, int]:
        """Return the controller's files and the value of each."""
        values = {"iops": self.iops, "bps": self.bytes_per_s}
        return {
            f"blkio.throttle.{way}_{kind}_device": value
            for way in ("read", "write")
            for kind, value in values.items()
            if value is not None
        }


@contextmanager
def limited(devices: Sequence[Path], limit: Limit, hierarchy: Path) -> Iterator[None]:
    """Limit each of the devices. The controller is mounted on ``hierarchy``, a directory only for this purpose.

    UnsupportedError if the controller is unavailable.
    """
    hierarchy.mkdir(mode=0o700, exist_ok=True)
    if (
        mounts.at(hierarchy) is None
        and _libc.mount(b"fslab", os.fsencode(hierarchy), b"cgroup", 0, b"blkio") != 0
    ):
        raise UnsupportedError(
            f"the kernel has no blkio controller here: {os.strerror(ctypes.get_errno())}",
            where="model",
            hint="remove 'model', 'iops' and 'bandwidth' from the medium, or use a guest: --on uml",
        )
    with ExitStack() as undo:  # each step, also after one that fails: a device may be gone
        undo.callback(hierarchy.rmdir)
        undo.callback(mounts.unmount, hierarchy)
        for number in [sysfs.device_number(device) for device in devices]:
            undo.callback(_write, hierarchy, number, dict.fromkeys(limit.files(), 0))
            _write(hierarchy, number, limit.files())
        yield


def _write(hierarchy: Path, number: str, values: dict[str, int]) -> None:
    for name, value in values.items():
        (hierarchy / name).write_text(f"{number} {value}")
