"""A device that the user named, during a campaign: locked, checked before it is overwritten, and left blank."""

import os
from collections.abc import Sequence
from pathlib import Path

from fslab.errors import UnsafeError
from fslab.storage import Workspace, blank_check, overwrite_check, signatures
from fslab.storage.identity import DiskIdentity
from fslab.system import sysfs


def held(path: str, workspace: Workspace) -> Path:
    """Lock the device until the end of the campaign and return its node.

    Raises an error unless it is unused, blank or named with --wipe at first, and the same disk later.
    """
    if (claim := f"claim {path}") not in workspace.media:
        workspace.media[claim] = overwrite_check.claim(path)
        workspace.exit.callback(overwrite_check.release, workspace.media[claim])
    device = overwrite_check.check_unused(path)
    claimed = os.fstat(workspace.media[claim][0]).st_rdev
    if f"{os.major(claimed)}:{os.minor(claimed)}" != sysfs.device_number(device):
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
        signatures.forget(path, workspace)
