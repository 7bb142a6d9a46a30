"""The kernel and modules that a study or a user names: root boots none that another user can change.

A kernel of User-Mode Linux and its modules run in a process of the host, and QEMU shows the host's files to its guest.
"""

import os
from itertools import chain
from pathlib import Path

from fslab.cell import MachineSpec
from fslab.machine import modules
from fslab.machine.kinds import Need
from fslab.system import path_owners

_closed: set[tuple[MachineSpec, Path | None]] = set()


def changeable(spec: MachineSpec, directory: Path | None) -> tuple[Need, ...]:
    """Return a need if a user other than root can change the named kernel or one of its modules, otherwise nothing.

    ``directory``: of the modules, None if there are none. Checked only when fslab runs as root.
    """
    named = [Path(each).expanduser() for each in (spec.kernel, spec.modules) if each is not None]
    if not named or os.geteuid() != 0:
        return ()
    files = chain(named, modules.files(directory) if directory else ())
    try:
        found = path_owners.stranger_in(files, groups=path_owners.Groups.WITHOUT_OTHERS)
        why = found and found[1]
    except OSError as error:
        why = f"it is not known who can write to {error.filename} ({error.strerror})"
    remedy = "use a copy where only root can write, or chown, chmod go-w, setfacl -b"
    return (Need(what=f"root does not boot what others can change: {why}", remedy=remedy),) if why else ()


def planned(spec: MachineSpec, directory: Path | None) -> tuple[Need, ...]:
    """Return what ``changeable`` returns. What passed once is not checked again, because many stacks of a plan have one
    kernel; ``boot`` calls ``changeable`` itself."""
    if (spec, directory) in _closed:
        return ()
    found = changeable(spec, directory)
    if not found:
        _closed.add((spec, directory))
    return found
