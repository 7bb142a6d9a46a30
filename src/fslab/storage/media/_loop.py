"""The common parts of loop and ram media: an image file, attached to a loop device for one trial."""

from contextlib import ExitStack
from pathlib import Path

from fslab.errors import NeedsRootError, UnsafeError
from fslab.storage import Growth, StackDevice, Workspace, images
from fslab.system import loops, mounts, sysfs

ROOMS = "rooms"  # in Workspace.media: how far each sparse image may grow


def check_root(effective_user: int, medium: str) -> None:
    """Raise NeedsRootError unless the effective user is root."""
    if effective_user != 0:
        raise NeedsRootError(
            f"a '{medium}' medium needs root",
            hint="use sudo, or measure one of your directories: fslab run here",
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
    entry = workspace.journal.will_create("loop", str(image))
    new = undo.enter_context(loops.added()) if discard else None
    undo.callback(_detach, image, workspace, entry)
    direct = direct and loops.allows_direct_io(image)
    argv = loops.attach_argv(image, direct=direct, device=new, sector_bytes=sector_bytes)
    device = Path(workspace.run("attach", argv).stdout.strip())
    if loops.backing(device) != workspace.media[str(image)]:
        # losetup opened it by name, and the owner of the directory can make this name any file or disk.
        workspace.run("detach", ["losetup", "--detach", str(device)])
        raise UnsafeError("another program replaced the image", where=str(image), hint=images.ONLY_YOURS)
    if not discard:
        loops.forbid_discard(device)
        if (forbidden := f"no discard {device}") not in workspace.media:
            workspace.media[forbidden] = True
            workspace.exit.callback(loops.renew, device)
    used = loops.uses_direct_io(device)
    facts = {
        **sysfs.geometry(device),
        "direct_io": used,
        "backing_filesystem": mounts.containing(image).filesystem,
        "image_allocated_bytes": image.stat().st_blocks * 512,
    }
    return StackDevice(
        path=device,
        size_bytes=image.stat().st_size,
        discard=discard,
        facts=facts,
        buffered=expect_direct and not used,
        grows=grows,
    )


def _detach(image: Path, workspace: Workspace, entry: str) -> None:
    loops.detach(image)
    workspace.journal.undone(entry)
