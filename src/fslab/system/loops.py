"""Loop devices: attach an image with direct I/O, verify, detach and wait until it is gone.

Only devices whose backing file is the given image are ever detached.
"""

from __future__ import annotations

import time
from pathlib import Path

from fslab.errors import MountError, ToolFailedError, UnsupportedError
from fslab.system import proc, sysfs

DETACH_DEADLINE_S = 10.0
CONTROL = Path("/dev/loop-control")


def check_supported() -> None:
    """UnsupportedError when this kernel has no loop devices."""
    if not CONTROL.exists():
        raise UnsupportedError(
            "this kernel has no loop devices", where=str(CONTROL),
            hint="load them (modprobe loop), or use a 'device' or 'directory' medium",
        )  # fmt: skip


def attach_argv(image: Path, *, direct: bool) -> list[str]:
    """losetup(8), for ``image``, on the first free device; prints the device's path."""
    return ["losetup", "--find", "--show", f"--direct-io={'on' if direct else 'off'}", str(image)]


def attached_to(image: Path, sys: Path = sysfs.SYS) -> list[Path]:
    """The loop devices whose backing file is ``image``, deleted or not."""
    wanted = {str(image), f"{image} (deleted)"}
    return [
        Path("/dev") / entry.parent.parent.name
        for entry in sorted(sys.glob("block/loop*/loop/backing_file"))
        if sysfs.text(entry) in wanted
    ]


def uses_direct_io(device: Path) -> bool:
    """Whether the kernel really bypasses the page cache of the backing file (sysfs ``loop/dio``)."""
    return sysfs.text(sysfs.block_directory(device) / "loop/dio") == "1"


def forbid_discard(device: Path) -> None:
    """Make the device refuse discards: they would punch holes into the fully written image."""
    (sysfs.block_directory(device) / "queue/discard_max_bytes").write_text("0")


def detach(image: Path) -> None:
    """Detach every loop device on ``image`` and wait until the kernel let go. Can be called twice."""
    deadline = time.monotonic() + DETACH_DEADLINE_S
    while devices := attached_to(image):
        for device in devices:
            try:
                proc.run(["losetup", "--detach", str(device)], timeout_s=30)
            except ToolFailedError:
                if attached_to(image) and time.monotonic() > deadline:
                    raise
        if attached_to(image):
            if time.monotonic() > deadline:
                raise MountError("the loop device stays attached", where=str(image), hint="fslab clean")
            time.sleep(0.02)
