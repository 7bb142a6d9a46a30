"""LVM under a configuration of its own: it sees our devices and nothing else, and needs neither lvm.conf nor udev.

lvm(8), lvm.conf(5). No volume group of the machine is ever looked at.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from fslab.storage.layouts import volume_name
from fslab.storage.layouts._joined import slaves
from fslab.system import proc, sysfs
from fslab.system.tools import Tool

EXTENT_BYTES = 4 << 20
HEAD_BYTES = 1 << 20  # label and metadata before the first extent (pe_start)
VOLUME = "lv"
LVM_VERSION = r"LVM version:\s+([\d.]+)"
TOOLS = (Tool(program="lvm", package="lvm2", version_argv=("version",), version_pattern=LVM_VERSION),)
# Kinds of block devices that LVM does not know by itself; the number is that of partitions.
FOREIGN = {"ubd": 16}


def command(verb: str, devices: Sequence[str], *words: str) -> tuple[str, ...]:
    """``lvm VERB`` that sees only ``devices``. An empty LVM_SYSTEM_DIR: no lvm.conf is read (lvm(8)).

    No locks: no other LVM command uses these devices, and those of the machine in /run/lock/lvm are its own, to be
    neither taken nor waited for.
    """
    config = ("--config", _config(devices), "--nolocking")
    return ("env", "LVM_SYSTEM_DIR=", "lvm", verb, *config, "--yes", "-qq", *words)


def device_of(group: str) -> str:
    """The node of our volume of a group; device-mapper doubles the hyphens of names."""
    return f"/dev/mapper/{_mapped(group)}"


def usable_bytes(disk_bytes: int) -> int:
    """Whole extents behind the metadata."""
    return max(0, disk_bytes - HEAD_BYTES) // EXTENT_BYTES * EXTENT_BYTES


def take_down(devices: Sequence[str], group: str) -> tuple[tuple[str, ...], ...]:
    """Remove the group with its volume, and the labels from its devices."""
    return (
        command("vgremove", devices, "--force", "--force", group),
        command("pvremove", devices, "--force", "--force", *devices),
    )


def undo(group: str) -> None:
    """Take down what is active of a group, on the devices that the kernel says it lies on."""
    for name in sysfs.SYS.glob("block/dm-*/dm/name"):
        if sysfs.text(name) == _mapped(group):
            devices = [f"/dev/{slave}" for slave in slaves(name.parent.parent)]
            for argv in take_down(devices, group):
                proc.run(argv)


def forget(group: str) -> None:
    """Remove the names of a volume that is gone, where no udev does."""
    for path in (Path(device_of(group)), Path("/dev") / group / VOLUME):
        if path.is_symlink() and not path.exists():
            path.unlink()
    directory = Path("/dev") / group
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def group_of(campaign: str) -> str:
    """The volume group of a campaign."""
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
