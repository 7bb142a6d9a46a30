"""The running kernel: its version, its file systems and its other modules, built in or loadable."""

import os
import platform
from pathlib import Path

from fslab.system import proc, search_path, sysfs

FILESYSTEMS = Path("/proc/filesystems")

_MODULES = Path("/lib/modules")


def known_filesystems() -> frozenset[str]:
    """Return the file systems that are built into the kernel or loaded now (proc(5))."""
    lines = (line.split() for line in (sysfs.text(FILESYSTEMS) or "").splitlines())
    return frozenset(words[-1] for words in lines if words)


def has_filesystem(mount_type: str, *, load: bool = True) -> bool:
    """Return whether the kernel has a file system or a module for it. ``load``: load that module (needs root).

    The module has the alias ``fs-NAME``, or only the file system's name (OpenZFS).
    """
    if mount_type in known_filesystems():
        return True
    found = has_module(f"fs-{mount_type}", load=load) or has_module(mount_type, load=load)
    return found and (not load or mount_type in known_filesystems())


def release() -> str:
    """Return the running kernel's version, such as ``6.12.41-amd64``."""
    return platform.uname().release


def has_module(module: str, *, load: bool) -> bool:
    """Return whether the kernel has ``module``. ``load``: load it if needed (needs root)."""
    if _is_present(module):
        return True
    if search_path.safe("modprobe") is None:
        return False
    argv = ["modprobe", *([] if load else ["--dry-run"]), "--quiet", module]
    return proc.run(argv, check=False).returncode == 0


def _is_present(module: str) -> bool:
    """Return whether the module is loaded or built in. A built-in one without parameters has no directory in sysfs."""
    name = module.replace("-", "_")
    if (sysfs.SYS / "module" / name).is_dir():
        return True
    builtin = (sysfs.text(_MODULES / os.uname().release / "modules.builtin") or "").splitlines()
    return name in {Path(line).name.removesuffix(".ko").replace("-", "_") for line in builtin}
