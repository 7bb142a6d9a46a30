"""Lets a User-Mode Linux older than 6.13 run on a CPU whose register state is larger than it has room for.

It hands the host a state of 2696 bytes; the host takes nothing but a whole one (xstateregs_set in
arch/x86/kernel/fpu/regset.c), which with AMX has 11008. A small library between the two makes it whole.
"""

from __future__ import annotations

from pathlib import Path

from fslab.system import proc, sysfs

SOURCE = Path(__file__).parent / "xstate.c"


def needed(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this CPU has registers beyond those that every User-Mode Linux knows."""
    for line in (sysfs.text(cpuinfo) or "").splitlines():
        if line.startswith("flags"):
            return bool({"amx_tile", "apx"} & set(line.split()))
    return False


def built(directory: Path) -> Path:
    """The library, compiled into ``directory``. ToolMissingError without a C compiler."""
    library = directory / "xstate.so"
    proc.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)])
    return library
