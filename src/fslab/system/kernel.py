"""What the running kernel can do: file systems, built in or loadable."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from fslab.system import proc, sysfs

FILESYSTEMS = Path("/proc/filesystems")
MODULES = Path("/lib/modules")
# kernel/fs/ext4/ext4.ko, perhaps compressed; in modules.dep followed by a colon and what it needs.
_MODULE = re.compile(r"([^/]+)\.ko(?:\.\w+)?$")


def known_filesystems(table: Path = FILESYSTEMS) -> frozenset[str]:
    """The file systems that the kernel has now (proc(5))."""
    return frozenset(line.split()[-1] for line in (sysfs.text(table) or "").splitlines() if line.split())


def has_filesystem(mount_type: str, *, load: bool = True) -> bool:
    """Whether the kernel has a file system; ``load``: a module that brings it may be loaded (needs root)."""
    if mount_type in known_filesystems():
        return True
    if shutil.which("modprobe", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return False
    argv = ["modprobe", *([] if load else ["--dry-run"]), "--quiet", f"fs-{mount_type}"]
    found = proc.run(argv, check=False).returncode == 0
    return found and (not load or mount_type in known_filesystems())


def release() -> str:
    """The running kernel's version, such as ``6.12.41-amd64``."""
    return platform.uname().release


def modules_in(directory: Path) -> frozenset[str] | None:
    """Names of the modules, built in or loadable, of the kernel whose modules lie there; None if none do.

    From modules.builtin and modules.dep, see depmod(8); dashes are written as underscores, as the kernel does.
    """
    texts = [sysfs.text(directory / name) for name in ("modules.builtin", "modules.dep")]
    if not any(texts):
        return None
    return module_names(line for text in texts for line in (text or "").splitlines())


def module_names(lines: Iterable[str]) -> frozenset[str]:
    """The module that each line of modules.builtin or modules.dep is about."""
    found = (_MODULE.search(line.partition(":")[0]) for line in lines)
    return frozenset(match[1].replace("-", "_") for match in found if match)
