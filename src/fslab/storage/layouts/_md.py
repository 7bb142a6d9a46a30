"""The common parts of Linux software RAID layouts, without mdadm.conf. mdadm(8), md(4).

Must not read more than the name of an array that fslab did not create.
"""

import stat
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from fslab.storage import Stripe, layouts
from fslab.storage.layouts import LayoutPlan, O, volume_name
from fslab.storage.layouts._joined import JoinedLayout
from fslab.system import proc, sysfs, waiting
from fslab.system.tools import Tool

TOOLS = (Tool(program="mdadm", package="mdadm", version_pattern=r"v(\d+\.\d+(?:\.\d+)*)"),)
NO_CONFIG = "--config=none"
# No host has this name, so no machine assembles the array as its own at boot.
HOMEHOST = "--homehost=none"
HEAD_BYTES = 1 << 20
MD_MAJOR = 9
METADATA = "1.2"
GONE_DEADLINE_S = 5.0


class Bitmapped(layouts.Disks):
    """Redundant levels can have a bitmap of the regions that are being written."""

    bitmap: Literal["none", "internal"] = Field(
        "none",
        description="write-intent bitmap; mdadm before 4.4 makes one on disks of 100 GB and more",
    )


class BitmappedChunked(layouts.Chunked, Bitmapped):
    """Chunks and a bitmap."""


C = TypeVar("C", bound=layouts.Chunked)


class Md(JoinedLayout[O]):
    """Base of the md levels. ``level``: as in mdadm(8). ``redundant``: it has copies or parity.

    A redundant array is created with ``--assume-clean``: otherwise its initial synchronisation would run during the
    first trials. Only blocks that were never written can differ between the copies.
    """

    tools = TOOLS
    undo_kind = "md-array"
    level: ClassVar[int]
    redundant: ClassVar[bool]

    def passes_zeros(self, options: O) -> bool:  # noqa: ARG002
        return not self.redundant  # raid1.c, raid5.c and raid10.c set max_write_zeroes_sectors to 0

    def stripe(self, options: O) -> Stripe | None:
        """Return how data is spread; None for a mirror."""
        raise NotImplementedError

    def plan(self, options: O, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return the plan: ``mdadm --create``, and ``--zero-superblock`` to make the devices blank again."""
        name = volume_name(campaign)
        device = f"/dev/md/{name}"
        stripe = self.stripe(options)
        chunk = [f"--chunk={stripe.chunk_bytes >> 10}"] if stripe else []
        clean = ["--assume-clean", f"--bitmap={getattr(options, 'bitmap', 'none')}"] if self.redundant else []
        stop = ("mdadm", "--stop", NO_CONFIG, device)
        return LayoutPlan(
            device=device,
            stripe=stripe,
            create=(
                ("wipefs", "--all", "--quiet", *devices),
                (
                    "mdadm", "--create", NO_CONFIG, device, HOMEHOST, f"--name={name}", f"--metadata={METADATA}",
                    "--run", f"--level={self.level}", f"--raid-devices={len(devices)}", *chunk, *clean, *devices,
                ),
            ),
            activate=(("mdadm", "--assemble", NO_CONFIG, device, HOMEHOST, "--run", *devices),),
            deactivate=(stop,),
            remove=(stop, ("mdadm", "--zero-superblock", *devices)),
        )  # fmt: skip

    def facts(self, node: Path) -> Mapping[str, Any]:
        """Return the state of the array in sysfs (Documentation/admin-guide/md.rst)."""
        md = sysfs.block_directory(node) / "md"
        return {
            "initial_sync": "assumed clean" if self.redundant else None,
            "sync_action": sysfs.text(md / "sync_action"),
            "bitmap": sysfs.text(md / "bitmap/location") if self.redundant else None,
        }

    def is_joined(self, block: Path, name: str, parts: Set[str]) -> bool:
        """Return whether an array has this name, or no readable one and no other disks than these."""
        if sysfs.text(block / "md/metadata_version") != METADATA:  # others need not have a name
            return False
        found, members = (
            _name_of("--detail", Path("/dev") / block.name),
            {slave.name for slave in sysfs.slaves(block)},
        )
        return found == name or (found is None and bool(members) and members <= parts)

    def stop(self, block: Path, name: str, members: Sequence[Path]) -> None:  # noqa: ARG002
        """Stop the array."""
        node = Path("/dev") / block.name
        proc.run(["mdadm", "--stop", NO_CONFIG, str(node)])
        _remove_node(node)

    def name_on(self, part: Path) -> str | None:
        return _name_of("--examine", part)

    def blank(self, part: Path) -> None:
        proc.run(["mdadm", "--zero-superblock", str(part)])

    def forget(self, name: str) -> None:
        """Remove the names of a stopped array: opening such a node makes the kernel create an empty array."""
        link = Path("/dev/md") / name
        if link.is_symlink():
            node = link.resolve()
            _remove_node(node)
            if not (sysfs.SYS / "block" / node.name).exists():
                link.unlink(missing_ok=True)


class Striped(Md[C]):
    """Base of the levels that stripe over all disks."""

    def stripe(self, options: C) -> Stripe:
        return Stripe(chunk_bytes=options.chunk_bytes, data_disks=options.disks - self.parities)

    def usable_bytes(self, options: C, disk_bytes: int) -> int:
        return (options.disks - self.parities) * usable_bytes(disk_bytes, options.chunk_bytes)


def usable_bytes(disk_bytes: int, chunk_bytes: int = 4096) -> int:
    """Return the size of the whole chunks after the superblock.

    mdadm reserves up to a thousandth of the disk for a later reshape (mdadm, super1.c).
    """
    return max(0, disk_bytes - HEAD_BYTES - disk_bytes // 1000) // chunk_bytes * chunk_bytes


def _name_of(mode: str, node: Path) -> str | None:
    """Return the name in the superblock of an array (``--detail``) or a disk (``--examine``), without the host name;
    None if there is none, or it cannot be read."""
    if not node.is_block_device():
        return None
    said = proc.run(["mdadm", mode, "--export", str(node)], check=False).stdout
    found = [line.partition("=")[2] for line in said.splitlines() if line.startswith("MD_NAME=")]
    return found[0].rpartition(":")[2] if found else None


def _remove_node(node: Path) -> None:
    """Remove the node of a stopped array. The kernel removes its directory in sysfs only later, in a workqueue
    (drivers/md/md.c, mddev_delayed_delete)."""
    block = sysfs.SYS / "block" / node.name
    waiting.until(lambda: not block.exists() or sysfs.slaves(block), GONE_DEADLINE_S)
    if block.exists() or not node.is_block_device():
        return
    found = node.stat()
    if stat.S_ISBLK(found.st_mode) and found.st_rdev >> 8 & 0xFFF == MD_MAJOR:
        node.unlink(missing_ok=True)
