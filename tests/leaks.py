"""Finds what a test left on the machine: loop devices, mounts, links, files, processes.

Only looks for what belongs to the test's own directories, so that tests can run in parallel.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from tests.limits import LIMIT_S

from fslab.system import files, loop_devices, memory, mountinfo, sysfs

GRACE_S = 20.0  # for a clean-up after SIGTERM; only a process that ignores it is killed then
POLL_S = 0.05


def of(*directories: Path) -> set[str]:
    """Return every loop device, mount, link, file and process that belongs to ``directories``, in words."""
    return _devices(directories) | _files(directories) | _processes(directories)


def detach_below(directory: Path) -> None:
    """Detach loop devices whose images are below a directory.

    Delete their partitions first. Otherwise they would stay and belong to the next image on the same device.
    """
    for name, image in _images():
        if _below(Path(image or "/"), (directory,)):
            # While it is open, it cannot get the image of another session after it was looked at.
            with contextlib.suppress(OSError), files.opened(Path("/dev", name)):
                if (name, image) in _images():
                    for number in (sysfs.SYS / "block" / name).glob("*/partition"):
                        subprocess.run(["delpart", f"/dev/{name}", number.read_text().strip()], check=False)
                    subprocess.run(["losetup", "--detach", f"/dev/{name}"], check=False)


def end_below(directory: Path) -> None:
    """End the processes that have a path below a directory in their arguments or environment, or are in it.

    An interrupted session leaves them: campaigns, which undo everything at SIGTERM, and servers.
    """
    for signum in (signal.SIGTERM, signal.SIGKILL):
        told: set[int] = set()  # each gets a signal once: a second SIGTERM would interrupt its clean-up
        deadline = time.monotonic() + GRACE_S
        while found := _running_in(directory):
            for process in {*found} - told:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signum)
                    os.kill(process, signal.SIGCONT)  # a test had stopped it: it would not see SIGTERM
            told |= {*found}
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_S)


def _running_in(directory: Path) -> list[int]:
    name, found = f"{directory}/".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            texts = [(process / each).read_bytes() for each in ("cmdline", "environ")]
            inside = os.fsencode((process / "cwd").readlink()) + b"/"
            is_other = int(process.name) != os.getpid()
            if is_other and not is_dead(process) and any(name in text for text in (*texts, inside)):
                found.append(int(process.name))
    return found


def is_dead(process: Path) -> bool:
    """Return whether a process, by its directory in /proc, has ended, also if it was not waited for."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except OSError:  # waited for, perhaps just now
        return True


def links() -> Iterable[Path]:
    """Return the links ``fslab-PID-…`` below /dev/disk that tests of all processes made for devices."""
    found: list[Path] = []
    for directory in Path("/dev/disk").glob("by-*"):
        with contextlib.suppress(FileNotFoundError):  # another test has removed it
            found += [entry for entry in directory.iterdir() if entry.name.startswith("fslab-")]
    return found


def settled(*directories: Path) -> set[str]:
    """Return what :func:`of` still finds after LIMIT_S seconds, or the empty set as soon as it finds nothing.

    Some things disappear only after a moment, such as the watchdog of a killed campaign.
    """
    deadline = time.monotonic() + LIMIT_S
    while (found := of(*directories)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return found


def _devices(directories: tuple[Path, ...]) -> set[str]:
    found = {
        f"loop {name} on {image}" for name, image in _images() if _below(Path(image or "/"), directories)
    }
    found |= {f"mount {mount.target}" for mount in mountinfo.mounted() if _below(mount.target, directories)}
    return found | {f"link {link}" for link in links() if link.name.startswith(f"fslab-{os.getpid()}-")}


def _images() -> list[tuple[str, str | None]]:
    """Return the attached loop devices with their images."""
    block = sysfs.SYS / "block"
    return [(name, sysfs.text(block / name / "loop/backing_file")) for name in loop_devices.attached()]


def _files(directories: tuple[Path, ...]) -> set[str]:
    """Return runtime directories, state files, and memory files of campaigns that have a journal there."""
    runtimes = [entry for each in directories for entry in (each / "fslab").glob("*")]
    found = {f"runtime {entry}" for entry in runtimes}
    for directory in directories:
        state = [path for path in (directory / "state").rglob("*") if path.is_file()]
        found |= {f"state {path}" for path in state}
        campaigns = {path.stem for path in state if path.suffix == ".jsonl"}
        found |= {f"memory {path}" for each in campaigns for path in memory.SHARED.glob(f"fslab-{each}-*")}
    return found


def _processes(directories: tuple[Path, ...]) -> set[str]:
    """Return running processes that have a path below these directories in their environment."""
    names = [str(directory).encode() + b"/" for directory in directories]
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            environment = (process / "environ").read_bytes()
            if any(name in environment for name in names):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.add(f"process {process.name} {command}")
    return found


def _below(path: Path, directories: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)
