"""Plug-ins: entries that installed packages add by entry points (``fslab.filesystems``, ``fslab.workloads``, …).

To find them, only metadata is read. Their code runs with the rights of fslab, mostly root. Therefore nothing is loaded
that another user can write to.
"""

import os
import stat
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fslab.errors import PluginError

SWITCH = "FSLAB_PLUGINS"
PREFIX = "fslab."
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """One entry point of an installed package. ``distribution``: the name of the package."""

    group: str
    name: str
    distribution: str
    version: str
    entry_point: EntryPoint = field(repr=False)

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    def load(self) -> Any:
        """Return the module or class that the entry point names. Raises PluginError if this fails or is unsafe."""
        try:
            _check_files(self.entry_point.module)
            return self.entry_point.load()
        except PluginError:
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # the code of another package can raise anything while it is imported
            raise self.error(f"cannot be loaded: {type(error).__name__}: {error}") from error

    def error(self, what: str) -> PluginError:
        """Return the error that explains why the plug-in is not used, with its package and a hint."""
        return PluginError(
            f"plug-in '{self.name}' ({self.group}) {what}",
            where=str(self),
            hint=f"uninstall or replace {self.distribution}, or set {SWITCH}=off to use no plug-ins",
        )


def of_group(group: str) -> tuple[Plugin, ...]:
    """Return the plug-ins of a group, sorted by name; none if ``FSLAB_PLUGINS=off``."""
    if os.environ.get(SWITCH, "").lower() in {"off", "0", "no", "none"}:
        return ()
    return _installed().get(group, ())


@cache
def _installed() -> dict[str, tuple[Plugin, ...]]:
    """Return all plug-ins by group. If a package is found twice, the first one is used, as Python imports that one."""
    found: dict[str, list[Plugin]] = {}
    seen: set[str] = set()
    for distribution in distributions():
        entries = [each for each in distribution.entry_points if each.group.startswith(PREFIX)]
        if not entries or distribution.name in seen:
            continue
        seen.add(distribution.name)
        for entry in entries:
            plugin = Plugin(
                group=entry.group, name=entry.name, distribution=distribution.name,
                version=distribution.version, entry_point=entry,
            )  # fmt: skip
            found.setdefault(entry.group, []).append(plugin)
    return {group: tuple(sorted(each, key=lambda plugin: plugin.name)) for group, each in found.items()}


def _check_files(module: str) -> None:
    """Raise PluginError if another user can write to the package of ``module``, or to a directory above it."""
    spec = find_spec(module.partition(".")[0])
    for path in _files_of(spec) if spec is not None else ():
        if why := _unsafe(path, inner=True):
            raise PluginError(f"plug-in not loaded: {why}", where=str(path), hint=_made_safe(path))
        for above in path.resolve().parents:
            if why := _unsafe(above, inner=False):
                raise PluginError(f"plug-in not loaded: {why}", where=str(above), hint=_made_safe(above))


def _made_safe(path: Path) -> str:
    return f"chmod go-w {path}; it must belong to root or to you: chown"


def _files_of(spec: ModuleSpec) -> list[Path]:
    """Return the file of a module, or all directories and files of a package."""
    if not spec.submodule_search_locations:
        return [Path(spec.origin)] if spec.origin else []
    roots = [Path(place) for place in spec.submodule_search_locations]
    return [*roots, *(Path(top) / name for root in roots for top, names, files in os.walk(root)
                      for name in (*names, *files))]  # fmt: skip


def _unsafe(path: Path, *, inner: bool) -> str | None:
    """Return why other users could change what is loaded from ``path``; None if they cannot.

    ``inner``: the path is part of the package. Above the package, a sticky directory such as /tmp is harmless.
    """
    found = path.stat()
    own = {
        0,
        os.geteuid(),
        Path(__file__).stat().st_uid,
    }  # including the owner of fslab's files, who can change fslab anyway
    if found.st_uid not in own:
        return f"it belongs to user {found.st_uid}"
    if found.st_mode & stat.S_ISVTX and not inner:
        return None
    private = found.st_gid in {0, found.st_uid}  # a group with the user as its only member
    writable = found.st_mode & (stat.S_IWOTH if private else _OTHERS_WRITE)
    return "other users can write to it" if writable else None
