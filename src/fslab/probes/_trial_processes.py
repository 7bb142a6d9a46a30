"""Which processes belong to a trial: what its tool started, daemons included."""

import os
from collections.abc import Iterable

from fslab.probes import Target
from fslab.system import disk_server, process_marks

_DISK = b"(" + disk_server.TOOL.program.encode()


def own_processes(target: Target, pids: Iterable[int]) -> frozenset[int]:
    """Return the processes that carry the campaign's mark in their environment or work in the file system under test.

    PostgreSQL, for example, overwrites its environment.
    """
    marked = process_marks.marked_processes(target.mark, target.proc) if target.mark else []
    mount = target.directory.parent
    device = os.stat(mount).st_dev if os.path.ismount(mount) else None  # noqa: PTH116 - plain calls
    return frozenset(marked) | {pid for pid in pids if _works_in(target, pid, device)}


def _works_in(target: Target, pid: int, device: int | None) -> bool:
    """Return whether a process's working directory is in the directory under test, or on its device (``device``)."""
    link = f"{target.proc}/{pid}/cwd"  # no Path: this is done for all processes of the machine
    try:
        if device is not None and os.stat(link).st_dev == device:  # noqa: PTH116 - follows the link also in namespaces
            return True
        return f"{os.readlink(link)}/".startswith(f"{target.directory}/")  # noqa: PTH115 - plain call
    except OSError:
        return False  # it has ended, or may not be seen


def is_disk(line: bytes, own: int) -> bool:
    """Return whether this is the server of a virtual disk that the process ``own`` started."""
    head, _, tail = line.rpartition(b")")
    return head.endswith(_DISK) and tail.split()[1:2] == [b"%d" % own]
