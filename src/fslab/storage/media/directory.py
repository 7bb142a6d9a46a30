"""An existing directory on a mounted file system: never formatted, works without root."""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pydantic import Field

from fslab.errors import UnsafeError
from fslab.names import LocalPath
from fslab.storage import Workspace, images, media, undone_later
from fslab.storage.media import MediumPlan
from fslab.system import trees


class DirectoryOptions(media.MediumOptions):
    """The existing directory."""

    path: LocalPath = Field(description="existing, writable directory, such as . or /srv/data")


class Directory(media.Medium[DirectoryOptions]):
    """A new directory inside the given one. Nothing else in the given directory is changed or removed."""

    summary = "existing directory, never formatted, no root needed"
    needs_root = False
    formatted = False
    Options = DirectoryOptions

    def plan(self, options: DirectoryOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        return MediumPlan(device=options.path, size_bytes=None, space={})

    def check(self, options: DirectoryOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Raise UsageError unless the directory exists and is writable. UnsafeError if root must not write there."""
        images.existing_directory(options.path)

    def provide(self, options: DirectoryOptions, workspace: Workspace, slot: str, undo: ExitStack) -> Path:
        """Return a new directory inside the given one. It is removed when the trial ends. Errors as for ``check``."""
        directory = images.existing_directory(options.path)
        path = directory.resolve() / f"fslab-{workspace.campaign}-{slot}"
        if os.path.lexists(path):
            raise UnsafeError("exists already; fslab does not touch it", where=str(path))
        with ExitStack() as made:
            entry = undone_later(workspace.journal, "tree", path, made, partial(trees.remove, path))
            try:
                path.mkdir(mode=0o700)
            except OSError:  # another program has just created this name: fslab must not remove it
                made.pop_all()
                workspace.journal.undone(entry)
                raise
            undo.push(made.pop_all())
        return path
