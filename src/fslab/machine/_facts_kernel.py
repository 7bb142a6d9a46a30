"""Facts of the kernel: release, command line, mitigations, clock source. Only reads."""

import os
import re
from pathlib import Path

from fslab.machine.fact import Fact, FactGroup, Value, Weight, text_of
from fslab.system import sysfs

VULNERABILITIES = "sys/devices/system/cpu/vulnerabilities"
# File names. They differ with each installed kernel and have no effect by themselves.
_BOOT_FILES = re.compile(r"(?:BOOT_IMAGE|initrd)=\S*\s*")
# Options that fslab gives its guests: directories, whose path contains the campaign's id, and descriptors.
_OF_ONE_RUN = re.compile(r'(?<!\S)(?:fslab_\w+=|con\d*=\S*fd:)(?:"[^"]*"|\S)*\s*')
_PREEMPTION = re.compile(r"\bPREEMPT\w*")


def mitigations(root: Path) -> Value:
    """Return the kernel's mitigation for each known vulnerability of the processor (admin-guide/hw-vuln)."""
    found = {path.name: sysfs.text(path) for path in (root / VULNERABILITIES).glob("*")}
    return {name: text for name, text in sorted(found.items()) if text} or None


def preemption(_: Path) -> Value:
    """Return the preemption model in the kernel's version string, such as ``PREEMPT_DYNAMIC``."""
    found = _PREEMPTION.search(os.uname().version)
    return found[0] if found else None


def command_line(value: object) -> str:
    """Return the command line without the names of the booted files, and without a guest's options for one run."""
    return _OF_ONE_RUN.sub("", _BOOT_FILES.sub("", str(value))).strip()


FACTS = (
    Fact(name="kernel", group=FactGroup.KERNEL, read=lambda _: os.uname().release),
    Fact(name="kernel_build", group=FactGroup.KERNEL, read=lambda _: os.uname().version),
    Fact(name="preempt_model", group=FactGroup.KERNEL, read=preemption),
    Fact(name="mitigations", group=FactGroup.KERNEL, read=mitigations),
    Fact(name="kernel_taint", group=FactGroup.KERNEL, weight=Weight.SHOWN, read=text_of("proc/sys/kernel/tainted")),
    Fact(
        name="kernel_command_line", group=FactGroup.SETTINGS, read=text_of("proc/cmdline"), canonical=command_line
    ),
    Fact(
        name="clocksource", group=FactGroup.SETTINGS,
        read=text_of("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ),
)  # fmt: skip
