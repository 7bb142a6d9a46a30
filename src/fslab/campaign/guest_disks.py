"""Inside a guest: the disks that the host plugged in, as devices of a stack. Runs nowhere else."""

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
    """The devices by slot, as long as the block runs."""
    with signals.Teardown() as undo:
        yield {slot: _attached(disk, undo) for slot, disk in plugged.items()}


def _attached(disk: Mapping[str, Any], undo: ExitStack) -> StackDevice:
    if disk["bind"] is not None:
        _bind(disk["bind"], undo)
    path = _node(disk)
    queue = sysfs.block_directory(path) / "queue"
    # virtio says that every disk turns; file systems and schedulers would treat it so.
    (queue / "rotational").write_text("1" if disk["rotational"] else "0")
    if not disk["discard"]:  # it would punch the image full of holes
        (queue / "discard_max_bytes").write_text("0")
    geometry = sysfs.geometry(path)
    size = geometry["size_bytes"]
    if not size:
        raise GuestError("the disk has no size", where=str(path))
    return StackDevice(
        path=path, size_bytes=size, discard=disk["discard"], facts={**geometry, **disk["facts"]}
    )


def _bind(name: str, undo: ExitStack) -> None:
    """Have the driver connect to the disk's server; the kernel did not find one at boot."""
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
    """The disk's node, when the kernel has made it."""
    deadline = time.monotonic() + NODE_LIMIT_S
    while time.monotonic() < deadline:
        if disk["device"] is not None and Path(disk["device"]).is_block_device():
            return Path(disk["device"])
        for entry in sysfs.SYS.glob("block/*/serial") if disk["serial"] else ():
            if sysfs.text(entry) == disk["serial"]:
                return Path("/dev") / entry.parent.name
        time.sleep(0.01)
    raise GuestError("the disk did not appear", where=str(disk["device"] or disk["serial"]))
