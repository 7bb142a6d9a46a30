"""File systems of the user that a test unmounts: after a crash, the journal says how to mount them again."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from fslab import untrusted_text
from fslab.errors import FslabError, MountError
from fslab.storage.filesystems import REGISTRY
from fslab.system import kernel_log, mounts, path_owners
from fslab.system.mountinfo import Mount

KIND = "mounted"


def target_of(mount: Mount) -> str:
    """Return what the journal keeps of a mount."""
    return json.dumps([mount.filesystem, mount.options, str(mount.target)])


def parse(target: str) -> tuple[str, str, Path] | None:
    """Return the file system, the options and the place; None if it is not such a text."""
    try:
        match untrusted_text.json_of(target):
            case [str(filesystem), str(options), str(place)] if (
                place.startswith("/") and "\0" not in place + options
            ):
                return (filesystem, options, Path(place)) if REGISTRY.get(filesystem).mounted else None
    except (ValueError, FslabError):
        pass
    return None


def is_mounted(target: str) -> bool:
    """Return whether something is mounted at the place."""
    found = parse(target)
    return found is not None and mounts.at(found[2]) is not None


def again(target: str, devices: Sequence[Path]) -> None:
    """Mount it, unless something is mounted there. MountError, with what to type, if it fails."""
    found = parse(target)
    if found is None or is_mounted(target):
        return
    filesystem, options, place = found
    for device in devices:
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
