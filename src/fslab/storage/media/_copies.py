"""Copies of images, kept from one trial to others: in memory if the image is in memory, else beside it."""

from dataclasses import dataclass, field
from pathlib import Path

from fslab.errors import FslabError, NoSpaceError
from fslab.storage import Workspace, images
from fslab.storage.media import _loop
from fslab.system import memory

KEY = "copies"  # in Workspace.media
MOST_SHARE = 2  # all copies together take at most half of the memory,
LEFT_SHARE = 3  # and only while a third of it stays available


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
        found: _Images = self.workspace.media.setdefault(KEY, _Images())
        return found

    def _new(self) -> Path:
        """Return an empty image for a copy. NoSpaceError if there is not enough room for it and for what other images
        need yet."""
        known, size_bytes, directory = self._images, _allocated(self.image), self.image.parent
        if memory.holds(directory):
            check_memory(size_bytes, sum(map(_allocated, known.kept.values())))
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


def check_memory(size_bytes: int, held_bytes: int) -> None:
    """Raise NoSpaceError unless a copy of this size may be kept in memory, beside others that take ``held_bytes``."""
    total, available = memory.total_bytes(), memory.available_bytes()
    if total is None or available is None:
        return
    if held_bytes + size_bytes > total // MOST_SHARE or available - size_bytes < total // LEFT_SHARE:
        raise NoSpaceError("not enough memory for another copy", where=images.MEMORY)


def _allocated(image: Path) -> int:
    return image.stat().st_blocks * 512
