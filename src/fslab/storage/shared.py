"""Finds the devices that share bytes with a block device, in sysfs. Only reads.

A disk has partitions, a partition may overlap another one, a volume lies on disks, a disk may be reached by several
paths, and SCSI and NVMe disks have a character device beside the block device.
"""

from collections.abc import Iterator
from pathlib import Path

from fslab.system import sysfs


def beside(block: Path) -> Iterator[Path]:
    """The device itself and all that hold the same bytes at the same level; ``block`` is its directory in sysfs.

    Its partitions; of a partition the whole disk, and partitions that overlap it; and the same of other paths to the
    same disk. Who writes to the disk writes to its partitions; beside them is no matter.
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


def below(block: Path) -> Iterator[Path]:
    """What a volume (LVM, md, dm) lies on, down to the disks, with all that shares their bytes."""
    for link in sorted((block / "slaves").glob("*")):
        part = link.resolve()
        yield from beside(part)
        yield from below(part)


def numbers(block: Path) -> set[str]:
    """``major:minor`` of every device through which the bytes of this one can be written; a character device's with a
    ``c`` before it."""
    found = set()
    for each in (*beside(block), *below(block)):
        found.add(number(each))
        found.update(_generic(disk(each)))
    return found


def partitions(block: Path) -> list[Path]:
    """The partitions of a disk."""
    return [entry.parent for entry in sorted(block.glob("*/partition"))]


def disk(block: Path) -> Path:
    """The disk that a partition is on, or the disk itself."""
    return block.parent if (block / "partition").exists() else block


def number(block: Path) -> str:
    """``major:minor``; empty where the kernel says none."""
    return sysfs.text(block / "dev") or ""


def _other_paths(block: Path) -> Iterator[Path]:
    """The same disk, or the same partition of it, by other paths: by its worldwide name."""
    whole = disk(block)
    name = _worldwide_name(whole)
    for other in sorted((sysfs.SYS / "block").glob("*")) if name else ():
        found = other.resolve()
        if found != whole and _worldwide_name(found) == name:
            same = found if whole == block else next(_like(block, found), None)
            if same is not None:
                yield same


def _like(part: Path, other: Path) -> Iterator[Path]:
    """The partition of another path to the disk that begins where this one does; the whole where it has none."""
    yield from (each for each in partitions(other) if _extent(each) == _extent(part))
    yield other


def _worldwide_name(whole: Path) -> str | None:
    return sysfs.text(whole / "device/wwid") or sysfs.text(whole / "wwid")


def _extent(block: Path) -> tuple[int, int]:
    start = sysfs.number(block / "start") or 0
    return start, start + (sysfs.number(block / "size") or 0)


def _generic(whole: Path) -> Iterator[str]:
    """The character devices that commands can be sent to a disk by: sg and bsg of SCSI, ng of NVMe."""
    entries = [
        *whole.glob("device/scsi_generic/*/dev"),
        *whole.glob("device/bsg/*/dev"),
        sysfs.SYS / "class/nvme-generic" / f"ng{whole.name.removeprefix('nvme')}" / "dev",
    ]
    for entry in entries:
        if found := sysfs.text(entry):
            yield f"c{found}"
