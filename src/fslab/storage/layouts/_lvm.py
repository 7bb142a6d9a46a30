"""LVM with its own configuration: it sees only the campaign's devices, and needs neither lvm.conf nor udev.

Sources: lvm(8), lvm.conf(5). Must not read any other volume group of the machine.
"""

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from fslab.storage import Stripe
from fslab.storage.layouts import Argv, LayoutOptions, LayoutPlan, O, volume_name
from fslab.storage.layouts._joined import USABLE, JoinedLayout
from fslab.system import proc, sysfs
from fslab.system.tools import Tool
from fslab.units import Size, format_size, parse_size

EXTENT_BYTES = 4 << 20
HEAD_BYTES = 1 << 20  # label and metadata before the first extent (pe_start)
VOLUME = "lv"
LVM_VERSION = r"LVM version:\s+([\d.]+)"
NO_UDEV = ("--noudevsync", "--noudevrules")
TOOLS = (Tool(program="lvm", package="lvm2", version_argv=("version",), version_pattern=LVM_VERSION),)
# Types of block devices that LVM does not support by default, with their number of partitions.
FOREIGN = {"ubd": 16}


NO_WIPE = ("--zero", "n", "--wipesignatures", "n")  # not needed: a new volume is blank or fslab's own


THIN_CHUNK = "64k"
THIN_LEAST_CHUNK_BYTES, THIN_LARGEST_CHUNK_BYTES = 64 << 10, 1 << 30  # lvmthin(7)
THIN_LEAST_BYTES = 96 << 20  # below, metadata and its spare take more than a tenth of the extents


class ThinOptions(LayoutOptions):
    """The chunk of a pool."""

    without: ClassVar[Mapping[str, str]] = {"disks": "the volume lies on one disk"}

    chunk: Size | None = Field(
        THIN_CHUNK, description="bytes that the pool allocates at once, a power of two of at least 64k"
    )

    @property
    def chunk_bytes(self) -> int:
        return parse_size(self.chunk or THIN_CHUNK)

    @model_validator(mode="after")
    def _chunk(self) -> Self:
        self.check_chunk()
        return self

    def check_chunk(self) -> None:
        """Raise ValueError for a chunk that lvcreate does not accept."""
        if not is_chunk(self.chunk_bytes, THIN_LEAST_CHUNK_BYTES, THIN_LARGEST_CHUNK_BYTES):
            least = format_size(THIN_LEAST_CHUNK_BYTES)
            raise ValueError(f"chunk '{self.chunk}' is not a power of two from {least} to 1 GiB")


class LvmVolume(JoinedLayout[O]):
    """Base of the layouts of LVM: one volume of a group for one campaign, with its own configuration, without udev."""

    tools = TOOLS
    undo_kind = "volume-group"

    def planned(
        self, devices: Sequence[str], campaign: str, *volumes: Argv, stripe: Stripe | None = None, **more: Any
    ) -> LayoutPlan:
        """Return the plan: ``vgcreate``, then ``volumes``, without automatic activation. ``more``: of the plan."""
        group = group_of(campaign)
        words = (
            "--setautoactivation",
            "n",
            "--physicalextentsize",
            f"{EXTENT_BYTES >> 20}m",
            group,
            *devices,
        )
        return LayoutPlan(
            device=device_of(group),
            stripe=stripe,
            create=(("wipefs", "--all", "--quiet", *devices), command("vgcreate", devices, *words), *volumes),
            activate=(command("lvchange", devices, "--activate", "y", f"{group}/{VOLUME}"),),
            deactivate=(deactivate(devices, group),),
            remove=take_down(devices, group),
            **more,
        )

    def is_joined(self, block: Path, name: str, parts: Set[str]) -> bool:  # noqa: ARG002
        """Return whether device-mapper's name is that of a volume of the group, or of a part of one."""
        return is_volume(block, name)

    def stop(self, block: Path, name: str, members: Sequence[Path]) -> None:
        """Stop the volume; by device-mapper alone if LVM cannot read its devices."""
        proc.run(deactivate([str(member) for member in members], name), check=False)
        if is_volume(block, name):  # every distribution's lvm2 needs dmsetup's package
            mapped = sysfs.text(block / "dm/name") or ""
            proc.run(["dmsetup", "remove", "--force", "--retry", *NO_UDEV, mapped])
            proc.run(["dmsetup", "mknodes", *NO_UDEV, mapped])  # removes its node

    def name_on(self, part: Path) -> str | None:
        """Return the name of the volume group that a disk is part of; None if there is none, or it cannot be read."""
        words = ("--noheadings", "--options", "vg_name", str(part))
        return proc.run(command("pvs", [str(part)], *words), check=False).stdout.strip() or None

    def blank(self, part: Path) -> None:
        """Remove the label from a disk of a group that is not active."""
        proc.run(command("pvremove", [str(part)], "--force", "--force", str(part)))

    def forget(self, name: str) -> None:
        """Remove the names of removed volumes, if udev does not do it."""
        directory = Path("/dev") / name
        for path in (*directory.glob("*"), *Path("/dev/mapper").glob(f"{_mapped(name)}-*")):
            if path.is_symlink() and not path.exists():
                path.unlink()
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()


def command(verb: str, devices: Sequence[str], *words: str) -> tuple[str, ...]:
    """Return the command ``lvm VERB`` that sees only ``devices``. With an empty LVM_SYSTEM_DIR it reads no lvm.conf.

    It uses no locks: no other LVM command uses these devices, and it must neither take the machine's locks in
    /run/lock/lvm nor wait for them. Source: lvm(8). For snapshots and thin volumes, lvcreate takes
    only the setting, not the option.
    """
    setting = bool({"--snapshot", "thin-pool", "thin"} & {*words})
    config = f"{_config(devices)} global/locking_type=0" if setting else _config(devices)
    unlocked = () if setting else ("--nolocking",)
    return ("env", "LVM_SYSTEM_DIR=", "lvm", verb, "--config", config, *unlocked, "--yes", "-qq", *words)


def device_of(group: str) -> str:
    """Return the node of the volume in a group. device-mapper doubles the hyphens of names."""
    return f"/dev/mapper/{_mapped(group)}-{VOLUME}"


def usable_bytes(disk_bytes: int) -> int:
    """Return the size of the whole extents after the metadata."""
    return max(0, disk_bytes - HEAD_BYTES) // EXTENT_BYTES * EXTENT_BYTES


def share_bytes(disk_bytes: int, percent: int, chunk_bytes: int = EXTENT_BYTES) -> int:
    """Return the size of a volume of so many percent of a group of one disk. LVM rounds down to whole extents.

    ``chunk_bytes``: of a pool, which has only whole chunks: a volume with a part of one could fill it.
    """
    unit = max(EXTENT_BYTES, chunk_bytes)
    return usable_bytes(disk_bytes) * percent // 100 // unit * unit


def is_chunk(value: int, least: int, most: int) -> bool:
    """Return whether a size is a power of two within these bounds."""
    return least <= value <= most and not value & (value - 1)


def thin(devices: Sequence[str], campaign: str, chunk_bytes: int, *, zero: bool = True) -> tuple[Argv, ...]:
    """Return the commands for a thin pool of all extents, and a thin volume of the layout's usable bytes."""
    group = group_of(campaign)
    pool = ("--type", "thin-pool", "--extents", "100%FREE", "--chunksize", f"{chunk_bytes >> 10}k",
            "--zero", "y" if zero else "n", "--name", "pool", group)  # fmt: skip
    volume = ("--type", "thin", "--virtualsize", f"{USABLE}b", "--name", VOLUME)
    return (
        command("lvcreate", devices, *pool),
        command("lvcreate", devices, *volume, "--thinpool", "pool", group),
    )


def take_down(devices: Sequence[str], group: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands that stop the volume, and remove the labels with the group's name from its devices.

    Without vgremove: after it, nothing on a device would say whose label it has.
    """
    return deactivate(devices, group), command("pvremove", devices, "--force", "--force", *devices)


def deactivate(devices: Sequence[str], group: str) -> tuple[str, ...]:
    return command("vgchange", devices, "--activate", "n", group)


def is_volume(block: Path, group: str) -> bool:
    """Return whether a device is one of the group's volumes. ``block``: its directory in sysfs."""
    return re.match(f"{_mapped(group)}-[^-]", sysfs.text(block / "dm/name") or "") is not None


def group_of(campaign: str) -> str:
    return volume_name(campaign)


def _mapped(group: str) -> str:
    return group.replace("-", "--")


def _config(devices: Sequence[str]) -> str:
    patterns = [*(f'"a|^{re.escape(device)}$|"' for device in devices), '"r|.*|"']
    filters = f"[{','.join(patterns)}]"
    foreign = [
        f'"{kind}",{number}'
        for kind, number in FOREIGN.items()
        if any(Path(device).name.startswith(kind) for device in devices)
    ]
    types = f" types=[{','.join(foreign)}]" if foreign else ""
    return (
        f'devices {{ filter={filters} global_filter={filters}{types} use_devicesfile=0 hints="none"'
        ' obtain_device_list_from_udev=0 external_device_info_source="none" md_component_detection=0'
        " multipath_component_detection=0 }"
        " activation { udev_sync=0 udev_rules=0 monitoring=0 }"
        " backup { backup=0 archive=0 }"
        ' global { use_lvmpolld=0 event_activation=0 thin_check_executable="" }'
    )
