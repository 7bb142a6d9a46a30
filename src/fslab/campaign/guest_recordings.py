"""Recordings of broken promises that a guest made: they leave it with its trial, and enter another guest, whose kernel
makes their states again and judges them. All files go through the directory that host and guest share."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from fslab.cell import MachineSpec, MediumSpec, StackSpec
from fslab.crash import kept_recordings
from fslab.errors import GuestError
from fslab.system import files, paths, proc, trees, untrusted_files

SLOT, LIMIT_S = "replay", 900.0
_SHARED, _IMAGE = "recordings", "state.img"


def hand_over(shared: Path) -> None:
    """In a guest: move its recordings to where the host takes them from. One for which there is no room is lost."""
    home = paths.recordings()
    for identity in kept_recordings.identities(home):
        with suppress(OSError):
            (shared / _SHARED).mkdir(exist_ok=True)
        if not _copied(home / identity, shared / _SHARED):
            shutil.rmtree(shared / _SHARED / identity, ignore_errors=True)
        shutil.rmtree(home / identity, ignore_errors=True)


def take_over(shared: Path, machine: MachineSpec, kernel: str) -> None:
    """On the host: keep the recording of a trial that a guest has handed over. ``kernel``: its version, as it says.

    Only one: each removes the oldest one that is kept.
    """
    place = shared / _SHARED
    if not os.path.lexists(place):
        return
    made_in = {"machine": machine.type, "memory": machine.memory, "kernel": kernel}
    with suppress(OSError), files.opened(place, os.O_DIRECTORY | os.O_NOFOLLOW) as given:
        for identity in sorted(each.name for each in os.scandir(given))[:1]:
            kept_recordings.take_over(given, identity, made_in, paths.recordings())
    trees.remove(place)


def bring(identity: str, shared: Path) -> None:
    """On the host: give a guest one of the kept recordings. Makes new files only: the guest already runs, and can put
    links to other files of the host there."""
    try:
        (shared / identity).mkdir(mode=0o700)
        with files.opened(shared / identity, os.O_DIRECTORY | os.O_NOFOLLOW) as place:
            for file in (paths.recordings() / identity).iterdir():
                with files.opened(file) as given:
                    files.copy_data(given, Path(f"/proc/self/fd/{place}/{file.name}"))
    except OSError as error:
        what = f"the recording cannot be copied into the directory of the guest: {error.strerror}"
        raise GuestError(what, where=str(shared)) from error


def receive(identity: str, shared: Path) -> None:
    """In a guest: keep the recording that the host has brought."""
    for module in ("fuse", "loop"):
        proc.run(["modprobe", "--quiet", module], check=False)
    files.make_directories(paths.recordings())
    if not _copied(shared / identity, paths.recordings()):
        raise GuestError("the memory of the guest is too small for the recording", where=identity)


def send_image(image: Path, shared: Path) -> None:
    """In a guest: copy the image of a state to where the host takes it from."""
    proc.run(["cp", "--sparse=always", "--", str(image), str(shared / _IMAGE)])


def take_image(shared: Path, image: Path) -> None:
    """On the host: copy what a guest sent to a new file."""
    try:
        given = untrusted_files.open_regular(shared / _IMAGE)
    except OSError as error:
        raise GuestError(f"no image of the state came from the guest: {error.strerror}") from error
    with files.closed_after(given):
        files.copy_data(given, image)


def stack(machine: MachineSpec) -> StackSpec:
    """Return a stack in a guest without disks of its own."""
    return StackSpec(name=SLOT, medium=MediumSpec(name=SLOT, type="ram"), filesystem=None, machine=machine)


def _copied(source: Path, target: Path) -> bool:
    argv = ["cp", "--recursive", "--sparse=always", "--", str(source), str(target)]
    return proc.run(argv, check=False).returncode == 0


def asked(name: str, shared: Path) -> dict[str, Any]:
    """Return the request to a guest: make a state again."""
    arguments = {"name": name, "shared": str(shared)}
    return {"do": "call", "function": "fslab.api.crash_states:crash_state_in_guest", "arguments": arguments}
