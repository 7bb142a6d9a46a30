"""Make User-Mode Linux before 6.13 run on a CPU whose register state is larger than the kernel's buffer.

Such a kernel passes 2696 bytes to the host. The host accepts only a complete state (xstateregs_set in
arch/x86/kernel/fpu/regset.c), which has 11008 bytes with AMX. A small preloaded library completes the state.
"""

import hashlib
import os
import shutil
import stat
from pathlib import Path

from fslab.errors import ToolFailedError
from fslab.system import files, paths, proc, sysfs, tools
from fslab.system.tools import Tool

SOURCE = Path(__file__).parent / "xstate.c"
LIBRARY = "xstate.so"
COMPILER = Tool(program="cc", package="gcc")
FOREIGN_WRITE = stat.S_IWGRP | stat.S_IWOTH


def needed(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether this CPU has registers that older versions of User-Mode Linux do not support (AMX, APX)."""
    return bool({"amx_tile", "apx"} & set((sysfs.field(cpuinfo, "flags") or "").split()))


def available() -> bool:
    """Return whether the library is in the cache, or a C compiler can build it. Only checks."""
    return _ours(_kept()) or tools.find(COMPILER.program) is not None


def install(directory: Path) -> str:
    """Put the library into ``directory`` and return its name relative to it. It is built at most once per user.

    An absolute path can contain a space, which ends a name in LD_PRELOAD (ld.so(8)). ToolMissingError without a
    compiler; ToolFailedError, with the package to install, if the compiler is incomplete.
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
    """Return whether only this user can have written the library, which a process will load.

    Under sudo, the cache may belong to another user.
    """
    try:
        found, directory = library.lstat(), library.parent.stat()
    except OSError:
        return False
    alone = all(
        each.st_uid == os.geteuid() and not each.st_mode & FOREIGN_WRITE for each in (found, directory)
    )
    return alone and stat.S_ISREG(found.st_mode)


def _keep(library: Path, kept: Path) -> None:
    """Copy the library into the cache atomically. If that fails, the next boot compiles it again."""
    unfinished = kept.with_suffix(f".{os.getpid()}")
    try:
        files.make_directories(kept.parent, 0o700)
        if kept.parent.stat().st_uid != os.geteuid():
            return
        shutil.copyfile(library, unfinished)
        unfinished.chmod(0o600)
        unfinished.rename(kept)
    except OSError:
        unfinished.unlink(missing_ok=True)
