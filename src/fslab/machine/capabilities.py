"""What this machine can measure, and what is missing with the command that gets it. Looks only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fslab.system import kernel, loops, tools
from fslab.system.tools import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Capability:
    """One thing that can or cannot be used. ``versions`` by program; ``missing`` says why not, ``remedy`` what
    to do about it."""

    kind: str
    name: str
    summary: str
    available: bool
    versions: dict[str, str | None]
    missing: tuple[str, ...] = ()
    remedy: str | None = None


def of_user() -> Capability:
    """Whether we are root."""
    root = os.geteuid() == 0
    return Capability(
        kind="machine", name="root", summary="make loop devices, mount, drop caches", available=root, versions={},
        missing=() if root else ("this is another user",),
        remedy=None if root else "run with sudo; without it, directories of yours can be measured (fslab run here)",
    )  # fmt: skip


def of_loops() -> Capability:
    """Whether the kernel has loop devices."""
    found = loops.CONTROL.exists()
    return Capability(
        kind="machine", name="loop", summary="loop devices for loop and ram media", available=found, versions={},
        missing=() if found else ("this kernel has no loop devices",), remedy=None if found else "modprobe loop",
    )  # fmt: skip


def of(
    kind: str, name: str, summary: str, needed: Sequence[Tool], mount_type: str | None = None
) -> Capability:
    """Whether the programs, and the kernel's file system if one is named, are there."""
    missing = [f"{tool.program} is not installed" for tool in needed if tools.find(tool.program) is None]
    if mount_type and not kernel.has_filesystem(mount_type, load=False):
        missing.append(f"this kernel has no {mount_type}")
    absent = [tool for tool in needed if tools.find(tool.program) is None]
    packages = _packages(absent)
    remedies = [f"apt-get install {' '.join(packages)}"] if packages else []
    remedies += elsewhere_missing(absent)
    return Capability(
        kind=kind, name=name, summary=summary, available=not missing,
        versions={tool.program: tools.version(tool) for tool in needed},
        missing=tuple(missing), remedy="; ".join(remedies) or None,
    )  # fmt: skip


def packages_missing(needed: Iterable[Tool]) -> list[str]:
    """Packages of Debian's main that bring the programs that are not there, sorted."""
    return _packages([tool for tool in needed if tools.find(tool.program) is None])


def elsewhere_missing(needed: Iterable[Tool]) -> list[str]:
    """What brings those that are in another part of Debian's archive: apt knows it only once that is switched on, and
    one package that it does not know makes it install none."""
    return sorted(
        {tool.remedy for tool in needed if tool.component != "main" and tools.find(tool.program) is None}
    )


def _packages(missing: Iterable[Tool]) -> list[str]:
    return sorted({tool.package for tool in missing if tool.package and tool.component == "main"})
