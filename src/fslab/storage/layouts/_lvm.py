"""LVM with its own configuration: it sees only the campaign's devices, and needs neither lvm.conf nor udev.

Sources: lvm(8), lvm.conf(5). Must not read any other volume group of the machine.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from fslab.storage.layouts import volume_name
from fslab.system import proc, sysfs
from fslab.system.tools import Tool

EXTENT_BYTES = 4 << 20
HEAD_BYTES = 1 << 20  # label and metadata before the first extent (pe_start)
VOLUME = "lv"
LVM_VERSION = r"LVM version:\s+([\d.]+)"
_NO_UDEV = ("--noudevsync", "--noudevrules")
TOOLS = (Tool(program="lvm", package="lvm2", version_argv=("version",), version_pattern=LVM_VERSION),)
# Types of block devices that LVM does not support by default, with their number of partitions.
FOREIGN = {"ubd": 16}


def command(verb: str, devices: Sequence[str], *words: str) -> tuple[str, ...]:
    """Return the command ``lvm VERB`` that sees only ``devices``. With an empty LVM_SYSTEM_DIR it reads no lvm.conf.

    It uses no locks: no other LVM command uses these devices, and it must neither take the machine's locks in
    /run/lock/lvm nor wait for them. Source: lvm(8).
    """
    config = ("--config", _config(devices), "--nolocking")
    return ("env", "LVM_SYSTEM_DIR=", "lvm", verb, *config, "--yes", "-qq", *words)


def device_of(group: str) -> str:
    """Return the node of the volume in a group. device-mapper doubles the hyphens of names."""
    return f"/dev/mapper/{_mapped(group)}"


def usable_bytes(disk_bytes: int) -> int:
    """Return the size of the whole extents after the metadata."""
    return max(0, disk_bytes - HEAD_BYTES) // EXTENT_BYTES * EXTENT_BYTES


def take_down(devices: Sequence[str], group: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands that stop the volume, and remove the labels with the group's name from its devices.

    Without vgremove: after it, nothing on a device would say whose label it has.
    """
    return deactivate(devices, group), command("pvremove", devices, "--force", "--force", *devices)


def deactivate(devices: Sequence[str], group: str) -> tuple[str, ...]:
    """Return the command that stops the group's volume."""
    return command("vgchange", devices, "--activate", "n", group)


def is_volume(block: Path, group: str) -> bool:
    """Return whether a device is the group's volume. ``block``: its directory in sysfs."""
    return sysfs.text(block / "dm/name") == _mapped(group)


def stop(block: Path, group: str, members: Sequence[Path]) -> None:
    """Stop the volume; by device-mapper alone if LVM cannot read its devices."""
    proc.run(deactivate([str(member) for member in members], group), check=False)
    if is_volume(block, group):  # every distribution's lvm2 needs dmsetup's package
        proc.run(["dmsetup", "remove", "--force", "--retry", *_NO_UDEV, _mapped(group)])
        proc.run(["dmsetup", "mknodes", *_NO_UDEV, _mapped(group)])  # removes its node


def group_on(device: Path) -> str | None:
    """Return the name of the group that a device is part of; None if there is none, or it cannot be read."""
    words = ("--noheadings", "--options", "vg_name", str(device))
    return proc.run(command("pvs", [str(device)], *words), check=False).stdout.strip() or None


def remove_label(device: Path) -> None:
    """Remove the label from a device of a group that is not active."""
    proc.run(command("pvremove", [str(device)], "--force", "--force", str(device)))


def forget(group: str) -> None:
    """Remove the names of a removed volume, if udev does not do it."""
    for path in (Path(device_of(group)), Path("/dev") / group / VOLUME):
        if path.is_symlink() and not path.exists():
            path.unlink()
    directory = Path("/dev") / group
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def group_of(campaign: str) -> str:
    """Return the name of a campaign's volume group."""
    return volume_name(campaign)


def _mapped(group: str) -> str:
    return f"{group.replace('-', '--')}-{VOLUME}"


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
        f"devices {{ filter={filters} global_filter={filters}{types} use_devicesfile=0 hints=\"none\""
        " obtain_device_list_from_udev=0 external_device_info_source=\"none\" md_component_detection=0"
        " multipath_component_detection=0 }"
        " activation { udev_sync=0 udev_rules=0 monitoring=0 }"
        " backup { backup=0 archive=0 }"
        " global { use_lvmpolld=0 event_activation=0 }"
    )  # fmt: skip
