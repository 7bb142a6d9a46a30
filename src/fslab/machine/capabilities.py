"""What this machine can measure, and what is missing with the command that gets it. Looks only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fslab.system import distributions, kernel, loops, tools
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
    lacks = [f"{tool.program} is not installed" for tool in missing(needed)]
    if mount_type and not kernel.has_filesystem(mount_type, load=False):
        lacks.append(f"this kernel has no {mount_type}")
    remedies = remedies_for(needed)
    return Capability(
        kind=kind, name=name, summary=summary, available=not lacks,
        versions={tool.program: tools.version(tool) for tool in needed},
        missing=tuple(lacks), remedy="; ".join(remedies) or None,
    )  # fmt: skip


def missing(needed: Iterable[Tool]) -> list[Tool]:
    """Those of the programs that are not installed, each once."""
    return [tool for tool in dict.fromkeys(needed) if tools.find(tool.program) is None]


def packages_missing(needed: Iterable[Tool]) -> list[str]:
    """This distribution's packages of the programs that are missing and can be installed as it is, sorted."""
    family = distributions.here()
    absent = [tool for tool in missing(needed) if tool.installable]
    return family.packages([tool.package for tool in absent if tool.package]) if family else []


def remedies_for(needed: Iterable[Tool]) -> list[str]:
    """The commands that install the missing programs: one for all that the package manager has, then the others.

    One package that a package manager does not know makes it install none.
    """
    absent = missing(needed)
    family, packages = distributions.here(), packages_missing(absent)
    command = [f"{family.install} {' '.join(packages)}"] if family and packages else []
    return command + sorted({tool.remedy for tool in absent if not tool.installable})
