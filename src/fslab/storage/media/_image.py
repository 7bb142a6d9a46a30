"""The common parts of media that are image files: their options and sizes, and copies that are kept from one trial to
others: in memory if the image is in memory, else beside it."""

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field

from fslab import scaling
from fslab.errors import FslabError, NoSpaceError
from fslab.storage import Growth, Workspace, images, media
from fslab.storage.media import _loop
from fslab.system import memory
from fslab.units import Size, SomeSize, parse_size

_COPIES = "copies"  # in Workspace.media
MOST_SHARE = 2  # all copies together take at most half of the memory,
LEFT_SHARE = 3  # and only while a third of it stays available


class ImageOptions(media.MediumOptions):
    """Size of an image."""

    size: Size = "1g"
    room: SomeSize | None = Field(
        None,
        description="make the image sparse, with space for this much written data, such as 4g; a trial that writes "
        "more fails. The first write to a region includes its allocation",
    )
    sector_size: Literal[512, 4096] | None = Field(
        None, description="logical block size of the device, on the host; default: the kernel's, which is 512"
    )


P = TypeVar("P", bound=ImageOptions)


def room_bytes(options: ImageOptions) -> int:
    """Return how much space an image needs in its directory or in memory."""
    size = parse_size(options.size)
    return size if options.room is None else min(size, parse_size(options.room))


def sparse_bytes(options: ImageOptions) -> int | None:
    """Return how far a sparse image may grow; None for an image that is fully written."""
    return room_bytes(options) if options.room else None


def growth(options: ImageOptions, image: Path) -> Growth | None:
    """Return the limit of a sparse image; None for an image that is fully written."""
    return Growth(image=image, room_bytes=room_bytes(options)) if options.room else None


_MIB = 1 << 20


def sectors_need_host(sector_size: int | None) -> str | None:
    """Return why no guest can have a disk with this sector size: disks of guests have their own."""
    return None if sector_size is None else "'sector_size' of a medium works on the host only"


class ImageMedium(media.Medium[P]):
    """A medium whose devices are image files that fslab creates. They can be plugged into a guest."""

    image = True

    def scaled(self, options: P, factor: float, *, least_bytes: int) -> scaling.Changes:
        """Scale ``size`` and ``room`` to whole MiB, at least ``least_bytes``. A smaller value of the study stays: what
        the study says that a medium has is never exceeded."""
        least = -(-least_bytes // _MIB) * _MIB
        written = {"size": options.size, **({"room": options.room} if options.room else {})}
        return {
            key: scaling.size(text, factor, least_bytes=least, unit_bytes=_MIB)
            for key, text in written.items()
        }

    def host_only(self, options: P) -> str | None:
        return sectors_need_host(options.sector_size)

    def copyable(self, options: P) -> bool:
        """Return whether it is sparse: of a sparse image, only what is written to it needs to be copied."""
        return bool(options.room)

    @abstractmethod
    def place(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> Path | None:
        """Return the directory of the slot's image, of the one plugged into a guest or of the host's. None if there is
        none yet. On the host and in a guest, a slot can have different images."""

    def copies(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> media.Copies | None:
        """Return the copies of the slot's image, as further images."""
        image = self._known(options, workspace, slot, in_guest=in_guest) if self.copyable(options) else None
        return None if image is None else ImageCopies(image=image, workspace=workspace)

    def renew(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> None:
        """Empty a sparse image, so that every trial begins without allocated regions and not only the first."""
        image = self._known(options, workspace, slot, in_guest=in_guest)
        if options.room and image is not None:
            images.empty(image, workspace)

    def _known(self, options: P, workspace: Workspace, slot: str, *, in_guest: bool) -> Path | None:
        return _loop.known_image(self.place(options, workspace, slot, in_guest=in_guest), workspace, slot)


@dataclass(kw_only=True, slots=True)
class _Images:
    """``kept``: by name. ``unused``: empty images of forgotten copies."""

    kept: dict[str, Path] = field(default_factory=dict)
    unused: list[Path] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageCopies:
    """Copies of ``image`` as further images. See ``media.Copies``."""

    image: Path
    workspace: Workspace

    def save(self, name: str) -> None:
        self.forget(name)
        copy = self._images.kept[name] = self._new()
        try:
            images.copy(self.image, copy, self.workspace)
        except (OSError, FslabError):
            self.forget(name)
            raise

    def load(self, name: str) -> tuple[str, ...]:
        if (copy := self._images.kept.get(name)) is None:
            raise FslabError(f"no copy '{name}' is kept", where=str(self.image))
        images.copy(copy, self.image, self.workspace)
        return ("cp", "--sparse=always", str(copy), str(self.image))

    def forget(self, name: str) -> None:
        if (copy := self._images.kept.pop(name, None)) is not None:
            images.empty(copy, self.workspace)
            self._images.unused.append(copy)

    @property
    def _images(self) -> _Images:
        found: _Images = self.workspace.media.setdefault(_COPIES, _Images())
        return found

    def _new(self) -> Path:
        """Return an empty image for a copy. NoSpaceError if there is not enough room for it and for what other images
        need yet."""
        known, size_bytes, directory = self._images, _allocated(self.image), self.image.parent
        if memory.holds(directory):
            check_memory_for_copy(size_bytes, sum(map(_allocated, known.kept.values())))
            directory = memory.directory(size_bytes, executable=False)
        images.check_room(directory, size_bytes + _loop.growth_bytes(directory, self.workspace))
        free = next((path for path in known.unused if path.parent == directory), None)
        if free is not None:
            known.unused.remove(free)
            return free
        number = len(known.kept) + len(known.unused)
        # No slot begins with an underscore, and cleaning up removes only what begins with fslab-CAMPAIGN-.
        path = directory / f"fslab-{self.workspace.campaign}-_copy-{number}.img"
        self.workspace.media[str(path)] = images.create(path, 0, self.workspace, sparse=True)
        return path


def check_memory_for_copy(size_bytes: int, held_bytes: int) -> None:
    """Raise NoSpaceError unless a copy of this size may be kept in memory, beside others that take ``held_bytes``."""
    total, available = memory.total_bytes(), memory.available_bytes()
    if total is None or available is None:
        return
    if held_bytes + size_bytes > total // MOST_SHARE or available - size_bytes < total // LEFT_SHARE:
        raise NoSpaceError("not enough memory for another copy", where=images.MEMORY)


def _allocated(image: Path) -> int:
    return image.stat().st_blocks * 512
