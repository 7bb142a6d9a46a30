"""Limits the memory of a command: that of its processes, and the page cache that they fill (cgroups(7)).

systemd makes the group where it manages them; elsewhere the group is below this process's own. Sources: Linux,
Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst; systemd.resource-control(5).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab.errors import UnsupportedError
from fslab.system import cgroup, signals, tools

_CONTROLLER = "memory"
_SYSTEMD, _SYSTEMD_RUN = Path("/run/systemd/system"), "systemd-run"  # sd_booted(3)
_ENTER = 'echo $$ >"$0" && exec "$@"'  # a shell moves itself into the group, and becomes the command


def is_possible() -> bool:
    """Return whether this process may limit the memory of a command. Changes nothing."""
    return _by_systemd() or cgroup.may_control(_CONTROLLER)


@contextmanager
def limited(
    name: str, limit_bytes: int, will_make: cgroup.Told = lambda _: None
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
            group = cgroup.create_v1(name, _CONTROLLER, will_make=will_make) or cgroup.create(
                name, _CONTROLLER, will_make=will_make
            )
            if group is None:
                raise UnsupportedError(
                    "the memory of a command cannot be limited: no control group may be made"
                )
            undo.callback(group.end)
        _limit(group.path, limit_bytes)
        yield ("sh", "-c", _ENTER, str(group.path / "cgroup.procs"))


def _limit(group: Path, limit_bytes: int) -> None:
    old = group / "memory.limit_in_bytes"
    (old if old.exists() else group / "memory.max").write_text(str(limit_bytes))
    for name, swap in (("memory.memsw.limit_in_bytes", limit_bytes), ("memory.swap.max", 0)):
        if (group / name).exists():  # of version 1, which counts both together, and of version 2
            (group / name).write_text(str(swap))


def _by_systemd() -> bool:
    return os.geteuid() == 0 and _SYSTEMD.is_dir() and tools.find(_SYSTEMD_RUN) is not None
