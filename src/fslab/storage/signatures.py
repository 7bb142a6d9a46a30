"""The signatures of file systems on devices that the user named, by which they are wiped after a crash, too.

A file system does not carry the campaign's name. Its UUID, in the journal, says that it is fslab's own. Must not wipe
any other signature.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from fslab.storage import Workspace, overwrite_check
from fslab.storage.layouts import volume_name
from fslab.system import proc

KIND = "signature"


def record(name: str, workspace: Workspace) -> None:
    """Journal the file system that was made on a device, instead of the one that it had before."""
    former = _recorded(name, workspace)
    workspace.media[f"{KIND} {name}"] = [
        workspace.journal.will_create(KIND, f"{volume_name(workspace.campaign)} {kind} {uuid}", [name])
        for kind, uuid in overwrite_check.identified(Path(name))
    ]
    _undone(former, workspace)


def forget(name: str, workspace: Workspace) -> None:
    """Journal that the device has no signature any more."""
    _undone(_recorded(name, workspace), workspace)


def wipe(target: str, devices: Sequence[Path]) -> None:
    """Wipe a signature of the journal from the devices that still have it. UnsafeError if one is in use."""
    _, kind, uuid = target.split(" ")
    for device in devices:
        if (kind, uuid) in overwrite_check.identified(device):
            overwrite_check.check_unused(str(device))
            proc.run(["wipefs", "--all", "--quiet", "--types", kind, str(device)])


def _recorded(name: str, workspace: Workspace) -> Iterable[str]:
    found: list[str] = workspace.media.pop(f"{KIND} {name}", [])
    return found


def _undone(entries: Iterable[str], workspace: Workspace) -> None:
    for entry in entries:
        workspace.journal.undone(entry)
