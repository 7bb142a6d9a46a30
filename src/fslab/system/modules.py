"""Kernel modules other than file systems: whether the running kernel has one, built in, loaded or loadable."""

import os
import shutil
from pathlib import Path

from fslab.system import proc, sysfs

ROOT = Path("/lib/modules")


def available(module: str, *, load: bool) -> bool:
    """Return whether the kernel has ``module``. ``load``: load it if needed (needs root)."""
    if _is_present(module):
        return True
    if shutil.which("modprobe", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return False
    argv = ["modprobe", *([] if load else ["--dry-run"]), "--quiet", module]
    return proc.run(argv, check=False).returncode == 0


def _is_present(module: str) -> bool:
    """Return whether the module is loaded or built in. A built-in one without parameters has no directory in sysfs."""
    name = module.replace("-", "_")
    if (sysfs.SYS / "module" / name).is_dir():
        return True
    builtin = (sysfs.text(ROOT / os.uname().release / "modules.builtin") or "").splitlines()
    return name in {Path(line).name.removesuffix(".ko").replace("-", "_") for line in builtin}
