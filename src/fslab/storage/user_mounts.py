"""File systems of the user that a test unmounts: after a crash, the journal says how to mount them again."""

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from fslab import untrusted_text
from fslab.errors import FslabError, MountError, UnsafeError
from fslab.storage.filesystems import REGISTRY
from fslab.system import files, kernel_log, mountinfo, mounts, path_owners, proc, trees
from fslab.system.mountinfo import Mount

KIND = "mounted"
_PROPAGATIONS = ("shared", "unbindable", "private")  # mount_namespaces(7)


def check_restorable(mount: Mount) -> None:
    """Raise UnsafeError unless all is as before after ``mount`` is unmounted and its device is mounted there again.

    What is mounted below it at the same place would be unmounted too, and lost if it is in memory. A part of a file
    system would become all of it. A second mount keeps in memory what the test takes from the disk. What a mount gets
    from its master in another namespace cannot be arranged again.
    """
    others = [other for other in mountinfo.mounted() if other.number != mount.number]
    whole = b"subvol=" + bytes(mount.root) in mountinfo.unescaped(mount.super_options).split(b",")
    with files.opened(mount.target, os.O_PATH) as place:
        hidden = trees.mount_of(place).split()[1] != str(mount.number)
    if hidden or any(other.target == mount.target for other in others):
        why = "several file systems are mounted over each other"
    elif mount.root != Path("/") and not whole:
        why = f"only {mount.root} of its file system is mounted"
    elif twice := [other for other in others if other.device == mount.device]:
        why = f"its file system is also mounted at {twice[0].target}"
    elif any(each.startswith("master:") for each in mount.propagation):
        why = "it gets mounts from another mount namespace (a slave)"
    else:
        return
    raise UnsafeError(
        f"{why}, and the test unmounts it", where=str(mount.target), hint="mount the disk once, by itself"
    )


def target_of(mount: Mount) -> str:
    """Return what the journal keeps of a mount."""
    return json.dumps([mount.filesystem, mount.options, str(mount.target), _propagation(mount)])


def _propagation(mount: Mount) -> str:
    kinds = {each.partition(":")[0] for each in mount.propagation}
    return next((kind for kind in _PROPAGATIONS if kind in kinds), _PROPAGATIONS[-1])


def parse(target: str) -> tuple[str, str, Path, str] | None:
    """Return the file system, the options, the place and the propagation; None if it is not such a text."""
    try:
        match untrusted_text.json_of(target):
            case [str(filesystem), str(options), str(place), str(kind)] if (
                place.startswith("/") and "\0" not in place + options and kind in _PROPAGATIONS
            ):
                return (filesystem, options, Path(place), kind) if REGISTRY.get(filesystem).mounted else None
    except (ValueError, FslabError):
        pass
    return None


def is_mounted(target: str) -> bool:
    """Return whether something is mounted at the place."""
    found = parse(target)
    return found is not None and mounts.at(found[2]) is not None


def again(target: str, devices: Sequence[Path]) -> None:
    """Mount it, unless something is mounted there, with its propagation. MountError, with what to type, if it fails."""
    found = parse(target)
    if found is None:
        return
    filesystem, options, place, propagation = found
    for device in devices:
        if mounts.at(place) is not None:
            break
        argv = REGISTRY.get(filesystem).mount_argv(options, str(device), str(place))
        try:
            path_owners.check_closed(place.parent)
            kernel_log.run(argv, failure=MountError, timeout_s=mounts.UNMOUNT_DEADLINE_S)
        except FslabError as error:
            raise MountError(
                f"not mounted again: {error.what}",
                where=str(place),
                hint=f"{shlex.join(argv)}; then: fslab clean",
            ) from error
    now = mounts.at(place)
    names = {each.resolve().name for each in devices}
    if now and mounts.device_under(now) in names and _propagation(now) != propagation:
        proc.run(["mount", f"--make-{propagation}", str(place)])
