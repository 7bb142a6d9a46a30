"""A control group (cgroups(7), version 2) for a process and all its descendants, whatever session they are in.

Creates groups only in a part of the hierarchy that no service manager controls: below a group that systemd delegated
(``Delegate=yes``; systemd.resource-control(5)), or below the root of a hierarchy without a service manager. A group
changes nothing for what runs in it, unless a controller is asked for. Version 1 has a hierarchy for each controller.
To limit memory, that of processes and the page cache that they fill, systemd makes the group where it manages them.
Sources: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UnsupportedError
from fslab.system import mountinfo, processes, signals, sysfs, tools, waiting

log = logging.getLogger("fslab.cgroup")
DELEGATED = ("user.delegate", "trusted.delegate")  # attributes that systemd sets on a delegated group
END_S = 5.0
STATE, THAWED = "freezer.state", "THAWED"
SWITCH = "cgroup.subtree_control"
Told = Callable[[Path], object]  # gets the directory of a group before it is made
_ALL = Path("/sys/fs/cgroup")
_MEMORY = "memory"
_SYSTEMD, _SYSTEMD_RUN = Path("/run/systemd/system"), "systemd-run"  # sd_booted(3)
_ENTER_GROUP = 'echo $$ >"$0" && exec "$@"'  # a shell moves itself into the group, and becomes the command


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlGroup:
    """A group. ``path``: its directory. ``enabled``: the controller that was enabled for it and can be disabled again
    with it: unless other groups are beside it then, because these may use it. After SIGKILL, it stays enabled too."""

    path: Path
    enabled: str | None = None

    def enter(self) -> None:
        """Move this process into the group. OSError if the group does not exist or may not be entered."""
        (self.path / "cgroup.procs").write_text("0")

    def processes(self) -> list[int]:
        """Return the ids of the processes in the group."""
        return [int(line) for line in (sysfs.text(self.path / "cgroup.procs") or "").split()]

    def end(self) -> None:
        """Kill what is left in the group, also if it is frozen, and remove it. What cannot be killed keeps the group,
        which harms nothing."""
        try:
            if left := self.processes():
                log.info("killed in %s: %s", self.path, left)
                self._kill(left)
            if (state := self.path / STATE).exists():  # what version 1 has frozen does not end before
                state.write_text(THAWED)
            waiting.until(lambda: not self.processes(), END_S)
            self.path.rmdir()
            if self.enabled and not any(self.path.parent.glob("*/")):
                (self.path.parent / SWITCH).write_text(f"-{self.enabled}")
        except OSError as error:
            log.info("%s stays: %s", self.path, error)

    def _kill(self, pids: Iterable[int]) -> None:
        if (switch := self.path / "cgroup.kill").exists():
            switch.write_text("1")
            return
        for _ in processes.killed(pids, self.processes):
            pass


def create(
    name: str, controller: str | None = None, *, will_make: Told = lambda _: None
) -> ControlGroup | None:
    """Create the group ``name`` below this process's own, or take the one that is there. None if that is not
    allowed. ``controller``: enabled for it."""
    own = _own()
    if own is None:
        return None
    missing = controller is not None and controller not in (sysfs.text(own / SWITCH) or "").split()
    try:
        if missing:
            (own / SWITCH).write_text(f"+{controller}")
    except OSError as error:
        log.info("no control group with the controller %s: %s", controller, error)
        return None
    return _made(own / name, will_make, enabled=controller if missing else None)


def create_v1(name: str, controller: str, *, will_make: Told = lambda _: None) -> ControlGroup | None:
    """Create a group as ``create`` does, in the hierarchy of a controller of version 1. No service manager forbids
    that. None if there is no such hierarchy, or that is not allowed."""
    own = path_v1("self", controller)
    return None if own is None else _made(own / name, will_make)


def path_v1(pid: int | str, controller: str) -> Path | None:
    """Return the group of a process in the hierarchy of a controller of version 1; None if it has none, or one that is
    not seen here."""
    lines = [line.split(":", 2) for line in (sysfs.text(Path(f"/proc/{pid}/cgroup")) or "").splitlines()]
    own = next((path for _, names, path in lines if controller in names.split(",")), None)
    return None if own is None or ".." in Path(own).parts else _ALL / controller / own.lstrip("/")


def may_control(controller: str) -> bool:
    """Return whether ``create_v1`` or ``create`` makes a group with a controller. Changes nothing."""
    old = path_v1("self", controller)
    if old is not None:
        return os.access(old, os.W_OK)
    own = _own()
    if own is None or controller not in (sysfs.text(own / "cgroup.controllers") or "").split():
        return False
    # The kernel enables a controller only in the root, or in a group without processes of its own.
    return not (own / "cgroup.type").exists() and os.access(own, os.W_OK)


def _made(path: Path, will_make: Told, enabled: str | None = None) -> ControlGroup | None:
    will_make(path)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        log.info("no control group: %s", error)
        return None
    return ControlGroup(path=path, enabled=enabled)


def _own() -> Path | None:
    """Return the directory of this process's group if it may have groups below it."""
    lines = (sysfs.text(Path("/proc/self/cgroup")) or "").splitlines()
    group = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    hierarchy = next((each.target for each in mountinfo.mounted() if each.filesystem == "cgroup2"), None)
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


def may_limit_memory() -> bool:
    """Return whether this process may limit the memory of a command. Changes nothing."""
    return _by_systemd() or may_control(_MEMORY)


@contextmanager
def memory_limited(
    name: str, limit_bytes: int, will_make: Told = lambda _: None
) -> Iterator[tuple[str, ...]]:
    """Yield the words before a command that limit its memory. It gets no swap. UnsupportedError if that is not
    possible.

    ``name``: of its control group, which is removed afterwards with all processes in it.
    """
    if _by_systemd():
        limits = (f"--property=MemoryMax={limit_bytes}", "--property=MemorySwapMax=0")
        yield (_SYSTEMD_RUN, "--scope", "--quiet", "--collect", *limits, "--")
        return
    with signals.Teardown() as undo:
        with signals.shielded():
            group = create_v1(name, _MEMORY, will_make=will_make) or create(
                name, _MEMORY, will_make=will_make
            )
            if group is None:
                raise UnsupportedError(
                    "the memory of a command cannot be limited: no control group may be made"
                )
            undo.callback(group.end)
        _limit_memory(group.path, limit_bytes)
        yield ("sh", "-c", _ENTER_GROUP, str(group.path / "cgroup.procs"))


def _limit_memory(group: Path, limit_bytes: int) -> None:
    old = group / "memory.limit_in_bytes"
    (old if old.exists() else group / "memory.max").write_text(str(limit_bytes))
    for name, swap in (("memory.memsw.limit_in_bytes", limit_bytes), ("memory.swap.max", 0)):
        if (group / name).exists():  # of version 1, which counts both together, and of version 2
            (group / name).write_text(str(swap))


def _by_systemd() -> bool:
    return os.geteuid() == 0 and _SYSTEMD.is_dir() and tools.find(_SYSTEMD_RUN) is not None
