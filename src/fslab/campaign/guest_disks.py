"""Inside a guest: attaches the disks that the host plugged in, as devices of a stack. Must not run on the host."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fslab.errors import GuestError
from fslab.storage import StackDevice
from fslab.system import proc, signals, sysfs

NODE_LIMIT_S = 20.0
DRIVER = sysfs.SYS / "bus/platform/drivers/virtio-uml"


@contextmanager
def attached(plugged: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, StackDevice]]:
    """Yield the plugged-in disks as devices, by slot. They are released when the block ends."""
    with signals.Teardown() as undo:
        yield {slot: _attached(disk, undo) for slot, disk in plugged.items()}


def _attached(disk: Mapping[str, Any], undo: ExitStack) -> StackDevice:
    if disk["bind"] is not None:
        _bind(disk["bind"], undo)
    path = _node(disk)
    queue = sysfs.block_directory(path) / "queue"
    # virtio reports every disk as rotational, and file systems and schedulers adapt to that.
    (queue / "rotational").write_text("1" if disk["rotational"] else "0")
    if not disk["discard"]:  # discards would punch holes into the image
        (queue / "discard_max_bytes").write_text("0")
    geometry = sysfs.geometry(path)
    size = geometry["size_bytes"]
    if not size:
        raise GuestError("the disk has no size", where=str(path))
    return StackDevice(
        path=path, size_bytes=size, discard=disk["discard"], facts={**geometry, **disk["facts"]}
    )


def _bind(name: str, undo: ExitStack) -> None:
    """Bind the driver, so that it connects to the disk's server. The kernel found no server at boot."""
    if not DRIVER.is_dir():
        raise GuestError(
            "this kernel has no virtio disks",
            where=name,
            hint="use a kernel with CONFIG_VIRTIO_UML and CONFIG_VIRTIO_BLK",
        )
    proc.run(["modprobe", "virtio_blk"], check=False)  # some kernels have it built in
    try:
        (DRIVER / "bind").write_text(name)
    except OSError as error:
        raise GuestError(f"cannot connect to the disk's server: {error.strerror}", where=name) from error
    undo.callback((DRIVER / "unbind").write_text, name)


def _node(disk: Mapping[str, Any]) -> Path:
    """Wait until the kernel has created the disk's node, and return its path."""
    deadline = time.monotonic() + NODE_LIMIT_S
    while time.monotonic() < deadline:
        if disk["device"] is not None and Path(disk["device"]).is_block_device():
            return Path(disk["device"])
        for entry in sysfs.SYS.glob("block/*/serial") if disk["serial"] else ():
            if sysfs.text(entry) == disk["serial"]:
                return Path("/dev") / entry.parent.name
        time.sleep(0.01)
    raise GuestError("the disk did not appear", where=str(disk["device"] or disk["serial"]))
