"""What a test leaves behind on the machine: loop devices, mounts, links, memory files, processes of its own.

Only what lies below the test's own directories or carries their name counts, so that tests run side by side.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from tests.limits import LIMIT_S

from fslab.system import memory, mounts, sysfs


def of(*directories: Path) -> set[str]:
    """Every loop device, mount, runtime directory, journal, image and process that belongs to ``directories``."""
    return _devices(directories) | _files(directories) | _processes(directories)


def detach_below(directory: Path) -> None:
    """Detach loop devices whose images lie below a directory; partitions would stay, and be the next image's."""
    for entry in sysfs.SYS.glob("block/loop*/loop/backing_file"):
        if _below(Path(sysfs.text(entry) or "/"), (directory,)):
            block = entry.parent.parent
            for number in block.glob("*/partition"):
                subprocess.run(["delpart", f"/dev/{block.name}", number.read_text().strip()], check=False)
            subprocess.run(["losetup", "--detach", f"/dev/{block.name}"], check=False)


def links() -> Iterable[Path]:
    """Names that tests gave to devices, of every process: ``fslab-PID-…``."""
    return Path("/dev/disk").glob("by-*/fslab-*")


def settled(*directories: Path) -> set[str]:
    """The same, when what is on its way out is gone: a watchdog of a killed campaign needs a moment."""
    deadline = time.monotonic() + LIMIT_S
    while (found := of(*directories)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _devices(directories: tuple[Path, ...]) -> set[str]:
    found = {
        f"loop {entry.parent.parent.name} on {sysfs.text(entry)}"
        for entry in sysfs.SYS.glob("block/loop*/loop/backing_file")
        if _below(Path(sysfs.text(entry) or "/"), directories)
    }
    found |= {f"mount {mount.target}" for mount in mounts.mounted() if _below(mount.target, directories)}
    return found | {f"link {link}" for link in links() if link.name.startswith(f"fslab-{os.getpid()}-")}


def _files(directories: tuple[Path, ...]) -> set[str]:
    """Runtime directories, journals, images; memory of guests whose campaigns these directories know."""
    runtimes = [entry for each in directories for entry in (each / "fslab").glob("*")]
    found = {f"runtime {entry}" for entry in runtimes}
    for directory in directories:
        state = [path for path in (directory / "state").rglob("*") if path.is_file()]
        found |= {f"state {path}" for path in state}
        campaigns = {path.stem for path in state if path.suffix == ".jsonl"}
        found |= {f"memory {path}" for each in campaigns for path in memory.SHARED.glob(f"fslab-{each}-*")}
    return found


def _processes(directories: tuple[Path, ...]) -> set[str]:
    """Processes that were started with these directories in their environment, and live."""
    names = [str(directory).encode() + b"/" for directory in directories]
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            environment = (process / "environ").read_bytes()
            if any(name in environment for name in names):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.add(f"process {process.name} {command}")
    return found


def _below(path: Path, directories: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)
