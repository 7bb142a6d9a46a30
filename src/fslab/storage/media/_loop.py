"""The common parts of loop and ram media: an image file, attached to a loop device for one trial."""

import errno
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from fslab.errors import MountError, NeedsRootError, UnsafeError, UnsupportedError
from fslab.storage import Growth, StackDevice, Workspace, images, undone_later
from fslab.system import block_queue, files, loop_devices, mountinfo, proc, rights, signals, sysfs

_REMOVED = frozenset({errno.ENXIO, errno.ENODEV, errno.ENOENT})
_NO_NODE = "a container needs the nodes /dev/loop* of the host"
ROOMS = "rooms"  # in Workspace.media: how far each sparse image may grow


def check_root(medium: str) -> None:
    """Raise NeedsRootError if this process cannot attach and mount devices."""
    if missing := rights.missing_for_mounts():
        raise NeedsRootError(
            f"a '{medium}' medium needs {missing}",
            hint=f"{rights.remedy(missing)}; or measure one of your directories: fslab run here",
        )


def image_for(
    directory: Path, workspace: Workspace, slot: str, size_bytes: int, *, room_bytes: int | None = None
) -> Path:
    """Return the campaign's image of this slot. Create it if it does not exist yet. ``room_bytes``: sparse, with room
    for so much."""
    image = _image(directory, workspace, slot)
    if str(image) not in workspace.media:
        sparse = room_bytes is not None
        workspace.media[str(image)] = images.create(image, size_bytes, workspace, sparse=sparse)
        if room_bytes is not None:
            workspace.media.setdefault(ROOMS, {})[image] = room_bytes
    return image


def known_image(directory: Path | None, workspace: Workspace, slot: str) -> Path | None:
    """Return the image of this slot in the directory if ``image_for`` has created it there."""
    if directory is None:
        return None
    image = _image(directory, workspace, slot)
    return image if str(image) in workspace.media else None


def growth_bytes(directory: Path, workspace: Workspace) -> int:
    """Return by how much the campaign's sparse images on this file system can still grow."""
    rooms: dict[Path, int] = workspace.media.get(ROOMS, {})
    place = directory.stat().st_dev
    beside = ((image.stat(), room_bytes) for image, room_bytes in rooms.items())
    return sum(max(0, room - found.st_blocks * 512) for found, room in beside if found.st_dev == place)


def _image(directory: Path, workspace: Workspace, slot: str) -> Path:
    # Resolved like the kernel's name of the backing file, by which the image is detached.
    return directory.resolve() / f"fslab-{workspace.campaign}-{slot}.img"


def identity(image: Path) -> tuple[int, int]:
    """Return device and inode number of an image, as ``loops.backing`` returns them."""
    found = image.stat()
    return found.st_dev, found.st_ino


def attach(
    image: Path,
    workspace: Workspace,
    undo: ExitStack,
    *,
    expect_direct: bool,
    direct: bool = True,
    sector_bytes: int | None = None,
    discard: bool = False,
    grows: Growth | None = None,
) -> StackDevice:
    """Attach a loop device to ``image``, and check that it uses direct I/O if it should. ``sector_bytes``: its logical
    block size; None: the default. ``discard``: do not forbid discards."""
    if grows:
        images.tell_when_full(undo, partial(images.check_growth, grows), if_failed=True)
    direct = direct and loop_devices.allows_direct_io(image)
    words = partial(loop_devices.attach_argv, image, direct=direct, sector_bytes=sector_bytes)
    device, check = _attached(image, workspace, undo, words, new=discard)
    if not discard:
        loop_devices.forbid_discard(device)
    block_queue.adapt_throttling(device)  # to the disk that the image lies on
    used = loop_devices.uses_direct_io(device)
    facts = {
        **sysfs.geometry(device),
        "direct_io": used,
        "backing_filesystem": mountinfo.containing(image).filesystem,
        "image_allocated_bytes": image.stat().st_blocks * 512,
    }
    return StackDevice(
        path=device,
        size_bytes=image.stat().st_size,
        discard=discard,
        facts=facts,
        buffered=expect_direct and not used,
        grows=grows,
        check=check,
    )


def _attached(
    image: Path, workspace: Workspace, undo: ExitStack, words: Callable[..., list[str]], *, new: bool
) -> tuple[Path, Callable[[], None]]:
    """Attach a loop device to ``image`` by the command of ``words``. Return it, and the check that it still lies on the
    very same file.

    The device is open from before it gets the image until it is detached: meanwhile, the kernel gives it no other one,
    whoever detaches it. ``new``: a device that had no image before.
    """
    if still := loop_devices.attached_to(image):
        # A second device would let mkfs write to a file system that is still mounted.
        raise MountError(f"{still[0]} still has the image", where=str(image), hint="fslab clean")
    deadline = time.monotonic() + loop_devices.DETACH_DEADLINE_S
    while True:
        with ExitStack() as attempt:
            device = attempt.enter_context(loop_devices.added()) if new else loop_devices.free()
            if not new and (renewed := f"renewed {device}") not in workspace.media:
                renew = partial(loop_devices.renew, device)
                undone_later(workspace.journal, loop_devices.RENEWED, device, workspace.exit, renew)
                workspace.media[renewed] = True
            undone_later(workspace.journal, "loop", image, attempt, partial(loop_devices.detach, image))
            try:
                held = files.held(device, attempt)
            except OSError as error:
                if error.errno in _REMOVED and time.monotonic() < deadline:
                    continue  # another process, such as an fslab that renews its own, removed the device
                raise UnsupportedError(
                    f"the loop device cannot be opened: {error.strerror}", where=str(device), hint=_NO_NODE
                ) from error
            loop_devices.forget_read_ahead(device)
            done = workspace.run("attach", words(device=device), check=False)
            if done.returncode == 0:
                check = partial(_check_backing, held, image, workspace.media[str(image)])
                try:
                    check()
                except UnsafeError:
                    workspace.run("detach", ["losetup", "--detach", str(device)])
                    raise
                with signals.shielded():
                    undo.push(attempt.pop_all())
                return device, check
            if os.strerror(errno.EBUSY) not in done.stderr or time.monotonic() > deadline:
                raise proc.failed(done)
            # Another process was faster, and took the device.


def _check_backing(held: int, image: Path, made: tuple[int, int]) -> None:
    """Raise UnsafeError unless an open loop device lies on the whole image that was made."""
    try:
        found = loop_devices.backing(held)
    except OSError as error:
        raise UnsafeError(
            f"another program detached the image ({error.strerror})", where=str(image), hint=images.ONLY_YOURS
        ) from error
    # losetup opened it by name, and the owner of the directory can make this name any file or disk.
    if found.file != made or not found.whole:
        raise UnsafeError("another program replaced the image", where=str(image), hint=images.ONLY_YOURS)
