"""Lets a User-Mode Linux older than 6.13 run on a CPU whose register state is larger than its buffer.

It passes 2696 bytes to the host, which accepts only a complete state (xstateregs_set in arch/x86/kernel/fpu/regset.c):
11008 bytes with AMX. A small preloaded library completes the state.
"""

import hashlib
import os
import shutil
import stat
from pathlib import Path

from fslab.errors import ToolFailedError
from fslab.system import paths, proc, sysfs, tools
from fslab.system.tools import Tool

SOURCE = Path(__file__).parent / "xstate.c"
LIBRARY = "xstate.so"
COMPILER = Tool(program="cc", package="gcc")
FOREIGN_WRITE = stat.S_IWGRP | stat.S_IWOTH


def needed(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this CPU has registers beyond those that every User-Mode Linux knows."""
    for line in (sysfs.text(cpuinfo) or "").splitlines():
        if line.startswith("flags"):
            return bool({"amx_tile", "apx"} & set(line.split()))
    return False


def available() -> bool:
    """Whether the library was built before, or a C compiler can build it. Looks only."""
    return _ours(_kept()) or tools.find(COMPILER.program) is not None


def install(directory: Path) -> str:
    """Put the library into ``directory``, built at most once for a user; returns its name from there.

    Not its path: in LD_PRELOAD a space would end that (ld.so(8)). ToolMissingError, ToolFailedError with what a
    compiler lacks.
    """
    library, kept = directory / LIBRARY, _kept()
    if _ours(kept):
        shutil.copyfile(kept, library)
        return f"./{LIBRARY}"
    try:
        proc.run([COMPILER.program, "-O2", "-shared", "-fPIC", "-nostdlib", "-o", str(library), str(SOURCE)])
    except ToolFailedError as error:
        raise ToolFailedError(
            error.what,
            where=error.where,
            hint=f"check that {COMPILER.program!r} is a complete C compiler: " + COMPILER.remedy,
        ) from error
    _keep(library, kept)
    return f"./{LIBRARY}"


def _kept() -> Path:
    return paths.cache() / f"xstate-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.so"


def _ours(library: Path) -> bool:
    """Whether only this user can have written what a process will load: under sudo the cache may be somebody else's."""
    try:
        found, directory = library.lstat(), library.parent.stat()
    except OSError:
        return False
    alone = all(
        each.st_uid == os.geteuid() and not each.st_mode & FOREIGN_WRITE for each in (found, directory)
    )
    return alone and stat.S_ISREG(found.st_mode)


def _keep(library: Path, kept: Path) -> None:
    """Whole or not at all; that it cannot be kept costs a moment at the next boot."""
    unfinished = kept.with_suffix(f".{os.getpid()}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if kept.parent.stat().st_uid != os.geteuid():
            return
        shutil.copyfile(library, unfinished)
        unfinished.chmod(0o600)
        unfinished.rename(kept)
    except OSError:
        unfinished.unlink(missing_ok=True)
