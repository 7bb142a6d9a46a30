"""The storage of containers: layers of an image, unpacked by tar(1), below an overlayfs. No container engine runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Self

from pydantic import Field, model_validator

from fslab import scaling
from fslab.applications import Amount, DriveRequest, StepLoad, SteppedApplication
from fslab.applications import _source_tree as trees
from fslab.filesystem_abilities import Ability
from fslab.system import namespaces

_ARCHIVES, _LAYERS, _CONTAINER, _TREE = "archives", "layers", "container", "tree"
_LINE = b"a line of a container\n"
_CHANGED = 20  # a layer adds, replaces and deletes as many files as the 20th part of the base image has
_FILES_PER_S, _APPENDS_PER_S = 8000.0, 300.0
_LEAST_FILES = 100


class ContainersLoad(StepLoad):
    """What `docker` and `podman` do with their overlay drivers, without engine, network and checksums. An image is a
    base of `files` files and `layers` layers, each of which adds, replaces and deletes (whiteouts) 5 % as many.
    load (`docker load`): `tar --extract` of each layer into a directory, from uncompressed archives on the same file
    system. start: mount an overlayfs of all layers with an empty directory on top, and read all files with `grep -r`.
    write: mount it, and append a line to each of `appends` files, which the kernel first copies to the top: by a
    reflink if the file system can, else the data, with a sync of each copy. prune (`docker system prune --all`):
    `rm -r` of everything. start and write find in memory what earlier steps read and wrote; as a step of its own
    (`steps: start`) they read from the disk. Before prune, each file that the container sees is compared with the
    layers."""

    known = ("load", "start", "write", "prune")
    writing = frozenset({"load", "write", "prune"})
    reading = frozenset({"load", "start", "write"})
    laid_out = frozenset({"files", "layers", "appends", "steps"})

    files: int = Field(
        10_000, ge=_LEAST_FILES, le=1_000_000, description="files in the base image, 15 kB on average"
    )
    layers: int = Field(8, ge=1, le=64, description="layers above the base image")
    appends: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="files to which the container appends a line; default: 5 % of `files`",
    )

    @property
    def appended(self) -> int:
        return self.appends or self.files // _CHANGED

    @property
    def unpacked(self) -> int:
        """The number of files in all layers."""
        return self.files + 2 * self.layers * (self.files // _CHANGED)

    @property
    def prepare_s(self) -> float:
        return 1 + self.unpacked / _FILES_PER_S * 2 + sum(map(self._seconds, self.done_before))

    @property
    def work_s(self) -> float:
        return sum(map(self._seconds, self.chosen))

    @property
    def space_bytes(self) -> int:
        """The archives, the layers, and the container's copies."""
        return 2 * trees.space_bytes(self.unpacked) + trees.space_bytes(self.appended)

    def scaled(self, factor: float) -> scaling.Changes:
        files = scaling.count(self.files, factor, least=_LEAST_FILES)
        if self.appends is None:
            return {"files": files}
        return {"files": files, "appends": scaling.count(self.appends, files.share)}

    def _seconds(self, step: str) -> float:
        return self.appended / _APPENDS_PER_S if step == "write" else self.unpacked / _FILES_PER_S

    @model_validator(mode="after")
    def _appends_to_what_is_there(self) -> Self:
        if self.appended > self.files:
            raise ValueError("'appends' must not be more than 'files'")
        return self


class Containers(SteppedApplication):
    summary = "containers: unpack layers of an image, read and change files through an overlayfs"
    tools = trees.TOOLS
    abilities = frozenset({Ability.OVERLAY})
    Load = ContainersLoad
    removes = frozenset({"prune"})

    def lay_out(self, drive: DriveRequest) -> None:
        (drive.directory / _ARCHIVES).mkdir()
        tree = _tree(drive, drive.directory)
        for number, layer in enumerate(_image(drive).layers):
            tree.write(layer.versions)
            for deleted in layer.deleted:
                tree.path(deleted).parent.mkdir(parents=True, exist_ok=True)
                namespaces.white_out(tree.path(deleted))
            trees.pack(_archive(number), _TREE, cwd=drive.directory)

    def before(self, drive: DriveRequest, step: str) -> None:  # noqa: ARG002
        """Find out what is in the image, so that it is not found out in the measured time."""
        _image(drive)

    def perform(self, drive: DriveRequest, step: str) -> None:
        match step:
            case "load":
                for number in range(1 + drive.load.layers):
                    layer = drive.directory / _LAYERS / _name(number)
                    layer.mkdir(parents=True)
                    trees.unpack(drive.directory / _archive(number), cwd=layer)
            case "start":
                with _merged(drive, writable=True) as merged:
                    trees.read(_TREE, _image(drive).marked, cwd=merged)
            case "write":
                with _merged(drive, writable=True) as merged:
                    tree = _tree(drive, merged)
                    for number in _image(drive).appended:
                        with tree.path(number).open("ab") as file:
                            file.write(_LINE)
            case _:
                made = (name for name in (_CONTAINER, _LAYERS) if (drive.directory / name).exists())
                trees.remove(*made, cwd=drive.directory)

    def amount(self, drive: DriveRequest, step: str) -> Amount:
        image, tree = _image(drive), _tree(drive, drive.directory)
        match step:
            case "load":
                unpacked = [each for layer in image.layers for each in layer.versions]
                size = sum(tree.sizes[number] for number in unpacked)
                return Amount(files=len(unpacked), read_bytes=size, written_bytes=size)
            case "start":
                size = sum(tree.sizes[number] for number in image.versions)
                return Amount(files=len(image.versions), read_bytes=size, written_bytes=0)
            case "write":
                size = sum(tree.sizes[number] for number in image.appended)
                written = size + len(_LINE) * len(image.appended)
                return Amount(files=len(image.appended), read_bytes=size, written_bytes=written)
            case _:
                return Amount(files=drive.load.unpacked, read_bytes=0, written_bytes=0)

    def problem(self, drive: DriveRequest, step: str) -> str | None:
        """Compare what a container sees with what the layers say; after the removal, nothing must be left."""
        if step == "prune":
            left = [name for name in (_CONTAINER, _LAYERS) if (drive.directory / name).exists()]
            return f"{left[0]} is still there" if left else None
        image = _image(drive)
        appended = frozenset(image.appended if step == "write" else ())
        with _merged(drive, writable=False) as merged:
            return _tree(drive, merged).difference(image.versions, appended, _LINE)


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """``versions``: of the files that it adds or replaces. ``deleted``: those of which it has a whiteout."""

    versions: dict[int, int]
    deleted: list[int]


@dataclass(frozen=True, kw_only=True)
class _Image:
    """``layers``: the base image first. ``versions``: of the files that a container sees, ``marked`` of which grep
    finds. ``appended``: those to which it appends."""

    layers: list[_Layer]
    versions: dict[int, int]
    marked: int
    appended: tuple[int, ...]


def _image(drive: DriveRequest) -> _Image:
    return _image_of(drive.load.files, drive.load.layers, drive.load.appended, drive.seed)


@lru_cache(maxsize=1)
def _image_of(files: int, layers: int, appends: int, seed: int) -> _Image:
    random, share = Random(seed), files // _CHANGED  # noqa: S311 - to be repeated
    versions = dict.fromkeys(range(files), 0)
    found = [_Layer(versions=dict(versions), deleted=[])]
    for version in range(1, layers + 1):
        chosen = random.sample(list(versions), 2 * share)
        replaced, deleted = chosen[:share], sorted(chosen[share:])
        first = files + (version - 1) * share
        changed = dict.fromkeys((*sorted(replaced), *range(first, first + share)), version)
        versions |= changed
        for number in deleted:
            del versions[number]
        found.append(_Layer(versions=changed, deleted=deleted))
    return _Image(
        layers=found,
        versions=versions,
        marked=sum(map(trees.is_marked, versions)),
        appended=tuple(random.sample(list(versions), appends)),
    )


@contextmanager
def _merged(drive: DriveRequest, *, writable: bool) -> Iterator[Path]:
    """Mount the layers, and yield the root of what a container sees. If it is not writable, the container's own files
    are the topmost layer: as they are on the disk."""
    layers = [_name(number) for number in range(drive.load.layers, -1, -1)]
    directory, container = drive.directory / _LAYERS, f"../{_CONTAINER}"
    upper = f"{container}/{namespaces.UPPER}"
    if not writable and (directory / upper).exists():
        layers = [upper, *layers]
    with namespaces.overlay(directory, layers, container=container if writable else None) as merged:
        yield merged


def _tree(drive: DriveRequest, root: Path) -> trees.SourceTree:
    """Return the tree of all files that are in any layer."""
    load = drive.load
    every = load.files + load.layers * (load.files // _CHANGED)
    return trees.SourceTree(root=root / _TREE, files=every, seed=drive.seed)


def _name(layer: int) -> str:
    return f"{layer:02d}"


def _archive(layer: int) -> str:
    return f"{_ARCHIVES}/{_name(layer)}.tar"
