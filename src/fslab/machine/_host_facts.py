"""Facts of the whole machine: name, vendor, virtualisation, distribution, file system of images. Only reads."""

import hmac
import os
import platform
import re
from pathlib import Path

from fslab import __version__
from fslab.machine.fact import Fact, FactGroup, Value, Weight, is_real, text_of
from fslab.system import mounts, paths, sysfs
from fslab.system.mountinfo import Mount

DMI = "sys/class/dmi/id"
# Prefixes of DMI vendor and product names, with their hypervisor, as in systemd-detect-virt(1) (src/basic/virt.c).
VENDORS = {
    "KVM": "kvm", "QEMU": "qemu", "Amazon EC2": "amazon", "Google Compute Engine": "google", "VMware": "vmware",
    "VMW": "vmware", "innotek GmbH": "virtualbox", "VirtualBox": "virtualbox", "Oracle Corporation": "virtualbox",
    "Xen": "xen", "Bochs": "bochs", "Parallels": "parallels", "BHYVE": "bhyve", "Hyper-V": "microsoft",
    "Apple Virtualization": "apple", "OpenStack": "kvm",
}  # fmt: skip
DMI_NAMES = ("product_name", "sys_vendor", "board_vendor", "bios_vendor")


def hypervisor(root: Path) -> Value:
    """Return whether the CPU flags contain ``hypervisor``, or None if /proc/cpuinfo has no flags."""
    flags = sysfs.field(root / "proc/cpuinfo", "flags")
    return None if flags is None else "hypervisor" in flags.split()


def virtualisation(root: Path) -> Value:
    """Return the hypervisor's name, ``unknown hypervisor`` if only the CPU flags show one, None if there is none."""
    if sysfs.field(root / "proc/cpuinfo", "vendor_id") == "User Mode Linux":
        return "uml"
    for said in (sysfs.text(root / DMI / name) for name in DMI_NAMES):
        for beginning, name in VENDORS.items():
            if said and said.startswith(beginning):
                return name
    if kind := sysfs.text(root / "sys/hypervisor/type"):
        return kind
    return "unknown hypervisor" if hypervisor(root) else None


def container(root: Path) -> Value:
    """Return the container manager, from systemd's container interface or a marker file; None if none is found."""
    if said := sysfs.text(root / "run/systemd/container"):
        return said
    for name, marker in (("docker", ".dockerenv"), ("podman", "run/.containerenv")):
        if (root / marker).exists():
            return name
    return None


def distribution(_: Path) -> Value:
    """Return ``PRETTY_NAME`` of os-release(5)."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _images(root: Path) -> Mount | None:
    """Return the mount that the images' directory lies on. The directory need not exist yet."""
    if not is_real(root):
        return None
    try:
        return mounts.containing(paths.images())
    except (OSError, ValueError):
        return None


def images_filesystem(root: Path) -> Value:
    """Return the type of the file system that loop images lie on."""
    mount = _images(root)
    return mount.filesystem if mount else None


def images_mount_options(root: Path) -> Value:
    """Return the options of the mount that loop images lie on, and of its superblock."""
    mount = _images(root)
    return mount.options if mount else None


def machine_id(root: Path) -> Value:
    """Return a digest of machine-id(5), because the id itself is confidential. None if it is not set yet."""
    text = (sysfs.text(root / "etc/machine-id") or "").strip()
    if not re.fullmatch("[0-9a-f]{32}", text):
        return None
    return hmac.digest(bytes.fromhex(text), b"fslab", "sha256").hex()[:16]


def _hostname(_: Path) -> Value:
    return os.uname().nodename


FACTS = (
    Fact(name="hostname", group=FactGroup.HOST, weight=Weight.SHOWN, read=_hostname),
    Fact(name="machine_id", group=FactGroup.HOST, weight=Weight.PASSING, read=machine_id),
    Fact(name="architecture", group=FactGroup.HOST, read=lambda _: os.uname().machine),
    Fact(name="hypervisor", group=FactGroup.HOST, read=hypervisor),
    Fact(name="virtualisation", group=FactGroup.HOST, read=virtualisation),
    Fact(name="container", group=FactGroup.HOST, read=container),
    Fact(name="vendor", group=FactGroup.HOST, read=text_of(f"{DMI}/sys_vendor")),
    Fact(name="product", group=FactGroup.HOST, read=text_of(f"{DMI}/product_name", "proc/device-tree/model")),
    Fact(name="firmware", group=FactGroup.HOST, read=text_of(f"{DMI}/bios_version")),
    Fact(name="distribution", group=FactGroup.HOST, weight=Weight.SHOWN, read=distribution),
    Fact(name="init", group=FactGroup.HOST, weight=Weight.PASSING, read=text_of("proc/1/comm")),
    Fact(name="fslab", group=FactGroup.TOOLS, weight=Weight.SHOWN, read=lambda _: __version__),
    Fact(name="images_filesystem", group=FactGroup.IMAGES, read=images_filesystem, medium="loop"),
    Fact(name="images_mount_options", group=FactGroup.IMAGES, read=images_mount_options, medium="loop"),
    Fact(
        name="boot_id",
        group=FactGroup.HOST,
        weight=Weight.PASSING,
        read=text_of("proc/sys/kernel/random/boot_id"),
    ),
    Fact(name="load_1min", group=FactGroup.HOST, weight=Weight.PASSING, read=lambda _: os.getloadavg()[0]),
)
