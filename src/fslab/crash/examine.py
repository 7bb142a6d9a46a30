"""Examine one crash state: mount it, read it, unmount it, check it. All mounts are in a mount namespace of the process:
if the process is killed, no mount, loop device or image remains.

For that, no image may lie on a mount that its own mount point lies on: if somebody removes the directory of the lower
mount in another namespace, the kernel detaches both as one tree (Linux, fs/namespace.c: UMOUNT_CONNECTED). The loop
device then keeps the lower mount, which keeps the upper one, which keeps the loop device, until the machine is reset.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fslab.crash.sources import Finding, Kind, Source, check_no_shortage, directory_of
from fslab.errors import MountError, UnsafeError, UnsupportedError
from fslab.filesystem_abilities import Ability, Needs
from fslab.storage.crash_promises import Promises
from fslab.storage.filesystems import FileSystem, others_in_log
from fslab.system import files, kernel_log, mountinfo, mounts, page_cache, proc, syscalls, sysfs
from fslab.system.kernel_log import WARNING, KernelMessages, belongs
from fslab.system.signals import Teardown
from fslab.system.syscalls import CLONE_NEWNS
from fslab.system.tool_messages import one_line, reports_shortage
from fslab.validity.trial_warnings.machine import BUSY, SERIOUS

LIMIT_S = 120.0

_LINES = 4
_NO_DEVICE = re.compile(r"failed to set ?up loop device")  # mount(8), which has not looked at the image


class Complaints:
    """Reads each line once, because earlier lines may be about another file system on the same loop device."""

    def __init__(self, mount_type: str) -> None:
        self._log, self._others = KernelMessages(), others_in_log(mount_type)

    def reasons(self) -> list[str]:
        """Return the errors and warnings since the previous call, except those about other file systems."""
        new = self._log.messages()
        return [text for level, text in new if level <= WARNING and not text.startswith(self._others)]

    def serious(self, devices: Sequence[str]) -> list[str]:
        """Return the new lines about ``devices`` (such as ``loop0``) that report an error of them or of the kernel."""
        new = (text for _, text in self._log.messages())
        texts = [text for text in new if SERIOUS.search(text) and not BUSY.search(text)]
        return [text for text in texts if belongs(text, devices, (), self._others)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The file system under test: its driver, its mount options as the kernel shows them, its promises, and ``root``,
    the directory on it in which the runs worked."""

    driver: FileSystem
    options: str
    promises: Promises
    root: str

    def mount(self, device: str, target: Path, *, limit_s: float = LIMIT_S) -> float:
        """Mount it from ``device``, of which nothing is cached then, and return the seconds for that. MountError if it
        cannot be mounted."""
        page_cache.drop_buffers(Path(device))
        argv = self.driver.mount_argv(self.options, device, str(target))
        return kernel_log.run(argv, failure=MountError, timeout_s=limit_s).duration_s

    def check_mountable(self, image: Path) -> None:
        """Raise UnsafeError if the mount of an image can do more than change the image. A recording from elsewhere can
        write that into a state, or its log when it is replayed."""
        if found := _danger(self.driver, self.options, _superblock(image)):
            raise UnsafeError(
                f"not mounted: {found[0]}",
                where=self.driver.name,
                hint="no recording that fslab makes says so: remove this one, and do not trust it",
            )

    def mount_copy(self, image: Path, target: Path) -> proc.Completed:
        """Mount an image that is a copy of it. The caller unmounts ``target``, however this ends."""
        options = self.driver.copy_mount_options(f"{self.options},loop")
        return _run(self.driver.mount_argv(options, str(image), str(target)))

    def check(self, image: str, *, limit_s: float = LIMIT_S) -> proc.Completed:
        """Check it, unmounted. Exit status 0: no damage."""
        return _run(self.driver.check_argv(image) or [], limit_s)

    def repair(self, image: str, *, limit_s: float = LIMIT_S) -> float:
        """Repair it, unmounted, and return the seconds for that."""
        if (argv := self.driver.repair_argv(image)) is None:
            raise MountError("no repair program is known for this file system", where=self.driver.name)
        return _run(argv, limit_s).duration_s

    def repaired_by(self, argv: Sequence[str] | None) -> bool:
        """Return whether a command of the driver's that repairs it succeeded; False if there is none."""
        if argv is None:
            return False
        return _run(argv).returncode in self.driver.repaired_statuses

    def mount_again(self, device: str, target: Path) -> None:
        """Mount it, unless it is mounted: however a test of a user's file system ends."""
        if mounts.at(target) is None:
            self.mount(device, target)

    def refuses(self, error: MountError, device: str, target: Path) -> bool:
        """Return whether it is to blame for this error of its last mount: it cannot be mounted now either, and nothing
        was short."""
        if mounts.at(target) is not None or reports_shortage(str(error)):
            return False
        try:
            self.mount(device, target)
        except MountError as again:
            return not reports_shortage(str(again))
        return False


def _run(argv: Sequence[str], limit_s: float = LIMIT_S) -> proc.Completed:
    """Run a program that mounts, checks or repairs. ToolFailedError if it failed, and not because of its image."""
    done = proc.answer(argv, timeout_s=limit_s)
    if done.returncode != 0 and (reports_shortage(done.stderr) or _NO_DEVICE.search(done.stderr)):
        raise proc.failed(done)
    return done


@dataclass(kw_only=True, slots=True)
class Examined:
    """The result for one image. ``recovery_ns``: time of the mount and, if the file system does not promise to be
    consistent, of check and repair before it; None if the first mount failed. ``contents``: what the source reads of
    each run."""

    recovery_ns: int | None = None
    findings: list[Finding] = field(default_factory=list)
    contents: dict[int, Any] = field(default_factory=dict)


def check_known(driver: FileSystem) -> None:
    """Raise UnsupportedError if the driver declares no promises or has no checker."""
    why = driver.why_not(Needs(abilities=frozenset({Ability.PROMISES})))
    if why is not None:
        raise UnsupportedError(why, where=driver.name)


def subject(driver: FileSystem, options: str, root: str, image: Path) -> Subject:
    """Return the file system under test. UnsupportedError as for :func:`check_known`, if ``image``, its device or a
    copy of it, is a part of it only (states would mix with what the other devices hold now), or if an error of it, as
    the test can cause, stops the machine."""
    check_known(driver)
    superblock = _superblock(image)
    if found := _danger(driver, options, superblock):
        raise UnsupportedError(found[0], where=driver.name, hint=found[1])
    promises = driver.promises(options.split(","), superblock)
    if promises is None:
        raise UnsupportedError("declares no promises with these options", where=driver.name)
    return Subject(driver=driver, options=options, promises=promises, root=root)


def _danger(driver: FileSystem, options: str, superblock: bytes) -> tuple[str, str] | None:
    """Return how a file system can do harm beyond its disk, and what to do; None if it cannot."""
    if driver.has_other_devices(options.split(","), superblock):
        why = "it is also on other devices, and the test cuts the power of one disk only"
        return why, "use a file system that is on one virtual disk, with its journal"
    if driver.ends_the_machine(options.split(","), superblock):
        why = "an error of it stops the whole machine (panic), and the test can cause one"
        return why, "mount it with another choice, such as errors=remount-ro"
    return None


def _superblock(image: Path) -> bytes:
    with image.open("rb") as file:
        return file.read(128 << 10)


def private(directory: Path, size: str, undo: ExitStack, *, uses: Path) -> Path:
    """Enter a mount namespace of this process. Return a new directory in ``directory`` for images, a tmpfs.

    ``undo`` unmounts it and leaves the namespace. When the process ends, everything still mounted disappears. Mounts of
    loop devices are removed from the namespace, unless the program, ``directory`` or ``uses`` lies on them: such a copy
    of a mount would keep a device in use after others have unmounted it. No disk but loop devices can be opened by its
    name: a recording from elsewhere can name this machine's.
    """
    images = directory / "images"
    images.mkdir()
    undo.callback(os.fchdir, files.held(".", undo, os.O_PATH))  # setns(2) changes to the root directory
    undo.callback(_call, syscalls.setns, files.held("/proc/thread-self/ns/mnt", undo), CLONE_NEWNS)
    _call(syscalls.unshare, CLONE_NEWNS)
    proc.run(["mount", "--make-rprivate", "/"])
    _keep_only(needed=[directory, uses, Path.cwd(), Path(sys.prefix), Path(__file__)])
    _hide_disks()
    undo.callback(mounts.unmount, images)
    proc.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "fslab-crash", str(images)])
    return images


def _call(call: Callable[..., None], *arguments: int) -> None:
    try:
        call(*arguments)
    except OSError as error:
        raise UnsupportedError(
            f"cannot change the mount namespace: {error.strerror}",
            where=f"{call.__name__}(2)",
            hint="run as root",
        ) from error


def _keep_only(needed: list[Path]) -> None:
    """Remove the mounts of loop devices, except those that these places lie on."""
    needed = [place.resolve() for place in needed]
    for mount in reversed(mountinfo.mounted()):
        on_it = any(place.is_relative_to(mount.target) for place in needed)
        if mount.source.startswith("/dev/loop") and not on_it:
            proc.run(["umount", "--lazy", str(mount.target)], check=False)


def _hide_disks() -> None:
    """Show /dev/null in the place of the node of each disk that is no loop device. By its name the kernel opens a
    device that it has seen with the UUID of a btrfs, and e2fsck one with the UUID of a journal."""
    names = (name for name in sysfs.names(f"{sysfs.SYS}/class/block") if not name.startswith("loop"))
    nodes = [Path("/dev", name.replace("!", "/")) for name in names]  # sysfs writes a slash as !
    for node in (*nodes, *Path("/dev/mapper").glob("*")):
        if node.is_block_device() and not node.is_symlink():
            with contextlib.suppress(FileNotFoundError):  # the device was just removed
                syscalls.bind(Path(os.devnull), node)


class Examiner:
    """Examines images one after the other. Mounts them on ``target``, which is not on the mount of the images."""

    def __init__(self, tested: Subject, source: Source[Any], target: Path) -> None:
        self._subject, self._source, self.target = tested, source, target
        self._kernel = Complaints(tested.driver.mount_type)

    def examine(self, image: Path, numbers: Iterable[int], *, cut_repair: bool = False) -> Examined:
        """Mount the image, read the directories of these runs, unmount and check it; repair it where needed.

        ``cut_repair``: the image is of a repair that a power cut ended; it is repaired again first.
        """
        seen, repaired_s = Examined(), 0.0
        if cut_repair:
            self._repair_fully(image, seen)
        elif not self._subject.promises.consistent.given:
            repaired_s = self._repair(image, seen)
        look = partial(self._look, numbers, seen)
        mounted_s = self._mounted(image, seen, look)
        if mounted_s is None:
            seen.findings.append(self._finding(Kind.UNMOUNTABLE, self._last_error))
            self._repair(image, seen, found=True)
            if self._mounted(image, seen, look) is None:
                return seen
        else:
            seen.recovery_ns = int((mounted_s + repaired_s) * 1e9)
        if not any(finding.kind is Kind.UNMOUNTABLE for finding in seen.findings):
            self._check(image, seen)
        usable = self._subject.promises.consistent.given and self._source.usable
        if not seen.findings and usable and self._mounted(image, seen, partial(self._use, seen)) is None:
            seen.findings.append(self._finding(Kind.UNMOUNTABLE, f"the second time: {self._last_error}"))
        return seen

    def _look(self, numbers: Iterable[int], seen: Examined) -> None:
        for number in numbers:
            directory = directory_of(self.target / self._subject.root, number)
            seen.contents[number] = self._source.look(directory)

    def _use(self, seen: Examined) -> None:
        """Write into what is left of each run, and remove it: names can remain that no checker misses."""
        for number in seen.contents:
            directory = directory_of(self.target / self._subject.root, number)
            try:
                self._source.use(directory)
            except OSError as error:
                check_no_shortage(error)
                at = os.path.relpath(error.filename or directory, directory)
                found = self._finding(Kind.UNWRITABLE, f"cannot write or remove '{at}': {error.strerror}")
                seen.findings.append(replace(found, sequence=number))

    _last_error = ""

    def _mounted(self, image: Path, seen: Examined, work: Callable[[], None]) -> float | None:
        """Mount the image, do ``work`` and unmount it. Note what the kernel logged meanwhile. Return the seconds of the
        mount; None if it failed."""
        self._kernel.reasons()
        self._subject.check_mountable(image)
        with Teardown() as undo:
            # Before: mount(8) can be ended when it has mounted.
            undo.callback(mounts.unmount, self.target, devices=None)
            done = self._subject.mount_copy(image, self.target)
            if done.returncode != 0:
                self._last_error = " | ".join([*self._kernel.reasons()[-_LINES:], one_line(done.stderr)])
                return None
            device = Path(mountinfo.containing(self.target).source).name
            work()
        if told := self._kernel.serious([device]):
            seen.findings.append(self._finding(Kind.KERNEL_LOG, " | ".join(told[:_LINES])))
        return done.duration_s

    def _repair(self, image: Path, seen: Examined, *, found: bool = False) -> float:
        """Repair the image if a check finds damage, or if damage was ``found`` before. Return the seconds for both."""
        checked_s = 0.0 if found else self._check(image, seen)
        if not (found or seen.findings):
            return checked_s
        return checked_s + self._subject.repair(str(image))

    def _repair_fully(self, image: Path, seen: Examined) -> None:
        """Repair the image. If that fails, discard its log as well: the cut may have left it half written."""
        driver = self._subject.driver
        commands = (driver.full_repair_argv(str(image)), driver.repair_argv(str(image)))
        if any(map(self._subject.repaired_by, commands)):
            return
        seen.findings.append(self._finding(Kind.DAMAGED, "cannot be repaired after a cut during its repair"))

    def _check(self, image: Path, seen: Examined) -> float:
        done = self._subject.check(str(image))
        if done.returncode != 0:
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if _tells(line)]
            text = f"{done.argv[0]}: exit status {done.returncode}: {' | '.join(lines[:_LINES])}"
            seen.findings.append(self._finding(Kind.DAMAGED, text))
        return done.duration_s

    def _finding(self, kind: Kind, detail: str) -> Finding:
        promises = self._subject.promises
        source = promises.caution or promises.consistent.source
        return Finding(kind=kind, broken=promises.consistent.given, detail=detail, source=source)


def _tells(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(
        ("e2fsck ", "Pass ", "Phase ", "        - ", "Opening", "Checking")
    )
