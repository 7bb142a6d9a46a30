"""A control group (cgroups(7), version 2) for a process and all its descendants, whatever session they are in.

Creates groups only in a part of the hierarchy that no service manager controls: below a group that systemd delegated
(``Delegate=yes``; systemd.resource-control(5)), or below the root of a hierarchy without a service manager. Enables no
controller, so that a group changes nothing for what runs in it.
"""

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from fslab.system import mounts, sysfs

log = logging.getLogger("fslab.cgroup")
DELEGATED = ("user.delegate", "trusted.delegate")  # attributes that systemd sets on a delegated group
END_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlGroup:
    """A group. ``path``: its directory."""

    path: Path

    def enter(self) -> None:
        """Move this process into the group. OSError if the group does not exist or may not be entered."""
        (self.path / "cgroup.procs").write_text("0")

    def processes(self) -> list[int]:
        """Return the ids of the processes in the group."""
        return [int(line) for line in (sysfs.text(self.path / "cgroup.procs") or "").split()]

    def end(self) -> None:
        """Kill what is left in the group and remove it. What cannot be killed keeps the group, which harms nothing."""
        until = time.monotonic() + END_S
        try:
            if left := self.processes():
                log.info("killed in %s: %s", self.path, left)
                (self.path / "cgroup.kill").write_text("1")
            while self.processes() and time.monotonic() < until:
                time.sleep(0.02)
            self.path.rmdir()
        except OSError as error:
            log.info("%s stays: %s", self.path, error)


def create(name: str) -> ControlGroup | None:
    """Create the group ``name`` below this process's own, or take the one that is there. None if that is not
    allowed."""
    own = _own()
    if own is None:
        return None
    path = own / name
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        log.info("no control group: %s", error)
        return None
    return ControlGroup(path=path)


def _own() -> Path | None:
    """Return the directory of this process's group if it may have groups below it."""
    lines = (sysfs.text(Path("/proc/self/cgroup")) or "").splitlines()
    group = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    hierarchy = next((each.target for each in mounts.mounted() if each.filesystem == "cgroup2"), None)
    if group is None or hierarchy is None or ".." in Path(group).parts:
        return None
    found = hierarchy / group.lstrip("/")
    return found if group == "/" or _is_delegated(found) else None


def _is_delegated(group: Path) -> bool:
    for name in DELEGATED:
        try:
            if os.getxattr(group, name) == b"1":
                return True
        except OSError:
            continue
    return False
