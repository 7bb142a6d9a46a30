"""Devices that the user named, during a campaign: locked, checked before they are overwritten, and left blank.

After a crash, the journal says which disk it was: the same one is found again, or none. A file system does not carry
the campaign's name; its UUID, in the journal, says that it is fslab's own. No other signature is wiped.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fslab.errors import UnsafeError
from fslab.storage import Workspace, blank_check, overwrite_check
from fslab.storage.layouts import volume_name
from fslab.system import proc, sysfs

SIGNATURE = "signature"


def held(path: str, workspace: Workspace) -> Path:
    """Lock the device until the end of the campaign and return its node.

    Raises an error unless it is unused, blank or named with --wipe at first, and the same disk later.
    """
    if (claim := f"claim {path}") not in workspace.media:
        workspace.media[claim] = overwrite_check.claim(path)
        workspace.exit.callback(overwrite_check.release, workspace.media[claim])
    device = overwrite_check.check_unused(path)
    claimed = os.fstat(workspace.media[claim][0]).st_rdev
    if sysfs.major_minor(claimed) != sysfs.device_number(device):
        raise UnsafeError("now names another disk than the locked one", where=path)
    if path not in workspace.media:
        identity = DiskIdentity.at(path, device)
        overwrite_check.check_blank(path, workspace.wipe, workspace.tell, device)
        workspace.media[path] = identity
    _check_same(path, device, workspace)
    return device


def recheck(paths: Sequence[str], workspace: Workspace) -> None:
    """Raise UnsafeError if a device is in use, is another disk, or was written since it was found to be blank.

    Only if all of them may be overwritten now, they are left blank at the end of the campaign: until then, what is on
    them is not fslab's.
    """
    for path in paths:
        device = overwrite_check.check_unused(path)
        _check_same(path, device, workspace)
        blank_check.check_unwritten(device)
    for path in paths:
        if (overwritten := f"overwritten {path}") not in workspace.media:
            workspace.media[overwritten] = True
            workspace.exit.callback(_leave_blank, path, workspace)


def check_same(path: str, workspace: Workspace) -> None:
    """Raise UnsafeError unless the name still leads to the disk of the campaign."""
    _check_same(path, Path(os.path.realpath(path)), workspace)


def _check_same(path: str, node: Path, workspace: Workspace) -> None:
    if workspace.media[path] != DiskIdentity.at(path, node):
        raise UnsafeError("now names another disk than at the start of the campaign", where=path)


def _leave_blank(path: str, workspace: Workspace) -> None:
    """Wipe the signature of the file system, so that nothing mounts it later."""
    # The name is looked up once: it can lead to another disk by the next time.
    if (device := workspace.media[path].node(rebooted=False)) is not None:
        overwrite_check.check_unused(str(device))
        workspace.run("detach", ["wipefs", "--all", "--quiet", str(device)])
        forget_signature(path, workspace)


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskIdentity:
    """``name``: a path. ``number``: ``major:minor``. ``sequence``: the kernel's ``diskseq``, which no other disk gets
    until the next boot; None on kernels before 5.15."""

    name: str
    number: str
    sequence: str | None

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the identity of the disk, or of the disk of the partition, that ``name`` leads to now."""
        return cls.at(name, Path(os.path.realpath(name)))

    @classmethod
    def at(cls, name: str, node: Path) -> Self:
        """Return the identity of the disk of a node that ``name`` led to. The name may lead elsewhere by now."""
        disk = sysfs.disk(sysfs.block_directory(node))
        return cls(name=name, number=sysfs.device_number(node), sequence=sysfs.text(disk / "diskseq"))

    def node(self, *, rebooted: bool) -> Path | None:
        """Return the device's node; None if the name is gone, or leads to another disk.

        Numbers change with a boot. After one, only a stable name still means the same disk.
        """
        node = Path(os.path.realpath(self.name))
        if not node.is_block_device() or (rebooted and not self.name.startswith(overwrite_check.STABLE)):
            return None
        return node if rebooted or DiskIdentity.at(self.name, node) == self else None


def record_signature(name: str, workspace: Workspace) -> None:
    """Journal the file system that was made on a device, instead of the one that it had before."""
    former = _recorded(name, workspace)
    workspace.media[f"{SIGNATURE} {name}"] = [
        workspace.journal.will_create(SIGNATURE, f"{volume_name(workspace.campaign)} {kind} {uuid}", [name])
        for kind, uuid in overwrite_check.identified(Path(name))
    ]
    _undone(former, workspace)


def forget_signature(name: str, workspace: Workspace) -> None:
    """Journal that the device has no signature any more."""
    _undone(_recorded(name, workspace), workspace)


def wipe_signature(target: str, devices: Sequence[Path]) -> None:
    """Wipe a signature of the journal from the devices that still have it. UnsafeError if one is in use."""
    _, kind, uuid = target.split(" ")
    for device in devices:
        if (kind, uuid) in overwrite_check.identified(device):
            overwrite_check.check_unused(str(device))
            proc.run(["wipefs", "--all", "--quiet", "--types", kind, str(device)])


def _recorded(name: str, workspace: Workspace) -> Iterable[str]:
    found: list[str] = workspace.media.pop(f"{SIGNATURE} {name}", [])
    return found


def _undone(entries: Iterable[str], workspace: Workspace) -> None:
    for entry in entries:
        workspace.journal.undone(entry)
