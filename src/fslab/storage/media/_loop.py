"""What loop and ram media share: an image file, attached to a loop device for one trial."""

from contextlib import ExitStack
from pathlib import Path

from fslab.errors import NeedsRootError, UnsafeError
from fslab.storage import StackDevice, Workspace, images
from fslab.system import loops, mounts, sysfs


def check_root(effective_user: int, medium: str) -> None:
    """NeedsRootError for anybody but root."""
    if effective_user != 0:
        raise NeedsRootError(
            f"a '{medium}' medium needs root",
            hint="use sudo, or measure one of your directories: fslab run here",
        )


def image_for(
    directory: Path, workspace: Workspace, slot: str, size_bytes: int, *, sparse: bool = False
) -> Path:
    """The campaign's image of this slot, made if it is not there yet."""
    # Resolved, as the kernel names it when it is to be detached.
    image = directory.resolve() / f"fslab-{workspace.campaign}-{slot}.img"
    if str(image) not in workspace.media:
        workspace.media[str(image)] = images.create(image, size_bytes, workspace, sparse=sparse)
    return image


def identity(image: Path) -> tuple[int, int]:
    """Device and inode number of an image, as a loop device tells of it."""
    found = image.stat()
    return found.st_dev, found.st_ino


def attach(
    image: Path, workspace: Workspace, undo: ExitStack, *, expect_direct: bool, discard: bool = False
) -> StackDevice:
    """A loop device on ``image``: direct I/O asked for and verified; ``discard``: not forbidden."""
    entry = workspace.journal.will_create("loop", str(image))
    new = undo.enter_context(loops.added()) if discard else None
    undo.callback(_detach, image, workspace, entry)
    argv = loops.attach_argv(image, direct=loops.allows_direct_io(image), device=new)
    device = Path(workspace.run("attach", argv).stdout.strip())
    if loops.backing(device) != workspace.media[str(image)]:
        # It came by name, and who owns the directory can give the name to any file or disk.
        workspace.run("detach", ["losetup", "--detach", str(device)])
        raise UnsafeError(
            "another program replaced the image", where=str(image),
            hint="choose a 'path' for the medium that only you can write to",
        )  # fmt: skip
    if not discard:
        loops.forbid_discard(device)
    direct = loops.uses_direct_io(device)
    facts = {
        **sysfs.geometry(device),
        "direct_io": direct,
        "backing_filesystem": mounts.containing(image).filesystem,
        "image_allocated_bytes": image.stat().st_blocks * 512,
    }
    return StackDevice(
        path=device,
        size_bytes=image.stat().st_size,
        discard=discard,
        facts=facts,
        buffered=expect_direct and not direct,
    )


def _detach(image: Path, workspace: Workspace, entry: str) -> None:
    loops.detach(image)
    workspace.journal.undone(entry)
