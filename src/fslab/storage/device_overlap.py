"""Find the devices that share bytes with a block device, in sysfs. Only reads.

A disk has partitions, a partition can overlap another one, a volume lies on disks, a loop device on a device or a file
that other loop devices can lie on too, a disk can have several paths, and SCSI and NVMe disks have a character device
in addition to the block device.
"""

from collections.abc import Iterator
from pathlib import Path

from fslab.errors import UnsafeError
from fslab.system import loop_devices, sysfs


def same_bytes(block: Path) -> Iterator[Path]:
    """Yield the device and all devices with the same bytes at the same level. ``block``: its directory in sysfs.

    For a disk, its partitions. For a partition, the whole disk and the partitions that overlap it. The same for other
    paths to the same disk. The whole disk counts because a write to it can change the partition.
    """
    for each in (block, *_other_paths(block)):
        yield each
        yield from partitions(each)
        if (each / "partition").exists():
            yield each.parent
            first, last = _extent(each)
            for part in partitions(each.parent):
                begin, end = _extent(part)
                if part != each and begin < last and first < end:
                    yield part


def same_extent(block: Path) -> Iterator[Path]:
    """Yield the device, and the others that no program can use while it is overwritten: other paths to the same disk or
    partition, and what a loop device lies on. The kernel knows the user of each of them only by itself."""
    yield block
    for other in _other_paths(block):
        # A path of NVMe multipath that is hidden has no number, so no program opens it.
        if number(other) and (other / "partition").exists() == (block / "partition").exists():
            yield other
    if (found := backing(sysfs.disk(block))) is not None and found.block is not None:
        yield from same_extent((sysfs.SYS / "dev/block" / found.block).resolve())


def below(block: Path) -> Iterator[Path]:
    """Yield the devices under a volume (LVM, md, dm) or a loop device, or under the one that a partition is on, down to
    the disks, and all devices that share their bytes."""
    whole = sysfs.disk(block)
    parts = sysfs.slaves(whole)
    if (found := backing(whole)) is not None and found.block is not None:
        parts.append((sysfs.SYS / "dev/block" / found.block).resolve())
    for part in parts:
        yield from same_bytes(part)
        yield from below(part)


def snapshots(block: Path) -> list[str]:
    """Return the names of the LVM snapshots of a volume or of one below it, which keep what is overwritten there until
    they are full. They lie on its hidden device, ``VOLUME-real``, too, and on a second one."""
    found = []
    for each in (block, *below(block)):
        slaves = sysfs.slaves(each)
        if len(slaves) == 1 and (sysfs.text(slaves[0] / "dm/uuid") or "").endswith("-real"):
            others = (
                other.resolve() for other in sysfs.entries(slaves[0] / "holders") if other.name != each.name
            )
            found += [sysfs.text(other / "dm/name") or other.name for other in others]
    return sorted(found)


def numbers(block: Path) -> set[str]:
    """Return the numbers of all devices and files through which the bytes of this device can be written, as from
    ``syscalls.file_number``."""
    found = set()
    for each in (*same_bytes(block), *below(block)):
        found.add(number(each))
        found.update(_generic(sysfs.disk(each)))
        if (lies_on := backing(sysfs.disk(each))) is not None and lies_on.block is None:
            device, inode = lies_on.file
            found.add(f"f{sysfs.major_minor(device)}:{inode}")
    return found


def partitions(block: Path) -> list[Path]:
    """Return the partitions of a disk."""
    return [entry.parent for entry in sorted(block.glob("*/partition"))]


def number(block: Path) -> str:
    """Return ``major:minor``; empty if unknown."""
    return sysfs.text(block / "dev") or ""


def _other_paths(block: Path) -> Iterator[Path]:
    """Yield the same disk, or the same partition, on other paths. A disk is identified by its worldwide name, a loop
    device by what it lies on."""
    whole = sysfs.disk(block)
    if (place := _place(whole)) is not None:
        others = [name for name in loop_devices.attached(sysfs.SYS) if name != whole.name]
        found = [other for name in others if _place(other := sysfs.SYS / "block" / name) == place]
    elif (worldwide := _worldwide_name(whole)) is not None:
        others = [name for name in sorted(sysfs.names(f"{sysfs.SYS}/block")) if name != whole.name]
        found = [o for name in others if _worldwide_name(o := sysfs.SYS / "block" / name) == worldwide]
    else:
        return
    for other in found:
        same = other.resolve() if whole == block else next(_like(block, other.resolve()), None)
        if same is not None:
            yield same


def _like(part: Path, other: Path) -> Iterator[Path]:
    """Yield the partition of ``other`` with the same extent as ``part``, then ``other``, which is the same disk."""
    yield from (each for each in partitions(other) if _extent(each) == _extent(part))
    yield other


def _worldwide_name(whole: Path) -> str | None:
    return sysfs.text(whole / "device/wwid") or sysfs.text(whole / "wwid")


def backing(whole: Path) -> loop_devices.Backing | None:
    """Return what a loop device lies on; None for another disk, or if it is not attached. UnsafeError if unknown."""
    attached = whole / "loop/backing_file"
    if not attached.exists():
        return None
    try:
        return loop_devices.backing_of(Path("/dev") / whole.name)
    except OSError as error:
        if not attached.exists():  # it was detached meanwhile
            return None
        node = f"mknod /dev/{whole.name} b {number(whole).replace(':', ' ')}"
        raise UnsafeError(
            f"it is unknown which device or file this loop device lies on: its node in /dev: {error.strerror}",
            where=f"/dev/{whole.name}",
            hint=f"create the node ({node}), or detach the loop device",
        ) from error


def _place(whole: Path) -> tuple[int, int] | str | None:
    found = backing(whole)
    return None if found is None else found.block or found.file


def _extent(block: Path) -> tuple[int, int]:
    start = sysfs.number(block / "start") or 0
    return start, start + (sysfs.number(block / "size") or 0)


def _generic(whole: Path) -> Iterator[str]:
    """Yield the numbers of the character devices that send commands to a disk: sg and bsg of SCSI, ng of NVMe."""
    entries = [
        *whole.glob("device/scsi_generic/*/dev"),
        *whole.glob("device/bsg/*/dev"),
        sysfs.SYS / "class/nvme-generic" / f"ng{whole.name.removeprefix('nvme')}" / "dev",
    ]
    for entry in entries:
        if found := sysfs.text(entry):
            yield f"c{found}"
