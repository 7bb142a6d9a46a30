"""Plug-ins: entries that installed packages add by entry points (``fslab.filesystems``, ``fslab.workloads``, …).

To find them, only metadata is read. Their code runs with the rights of fslab, mostly root. Therefore nothing is loaded
that another user can write to: neither the metadata that names it, nor its source, nor compiled files beside it.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from importlib.util import cache_from_source, find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from fslab.errors import PluginError, nearest
from fslab.system import path_owners

SWITCH = "FSLAB_PLUGINS"
PREFIX = "fslab."


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """One entry point of an installed package. ``distribution``: the name of the package. ``metadata``: the files or
    directories that contain its metadata."""

    group: str
    name: str
    distribution: str
    version: str
    entry_point: EntryPoint = field(repr=False)
    metadata: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    def load(self) -> Any:
        """Return the module or class that the entry point names. Raises PluginError if this fails or is unsafe."""
        try:
            _check_files(self.metadata)
            # Each before it is imported to find the next one: a package can have its modules elsewhere.
            for module in accumulate(self.entry_point.module.split("."), "{}.{}".format):
                _check_files(_code_of(module))
            return self.entry_point.load()
        except PluginError:
            raise
        except (Exception, SystemExit) as error:  # code of another package can raise anything
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


def of_other_groups(known: Collection[str]) -> Iterator[PluginError]:
    """Yield an error for each plug-in of a group of fslab's that does not exist."""
    for group in sorted(_installed()):
        if group not in known:
            for plugin in of_group(group):
                yield plugin.error(f"is not used: fslab has no such group ({nearest(group, known)})")


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
                version=distribution.version, entry_point=entry, metadata=_metadata_of(distribution),
            )  # fmt: skip
            found.setdefault(entry.group, []).append(plugin)
    return {group: tuple(sorted(each, key=lambda plugin: plugin.name)) for group, each in found.items()}


def _check_files(files: Iterable[Path]) -> None:
    """Raise PluginError if another user can change one of these files, or exchange it or what leads to it."""
    # Including the owner of fslab's files, who can change fslab anyway.
    owners = {0, os.geteuid(), Path(__file__).stat().st_uid}
    groups = path_owners.Groups.WITHOUT_OTHERS  # Debian gives /usr/local/lib/python3 to the group staff
    if found := path_owners.stranger_in(files, owners, groups=groups):
        file, why = found
        hint = f"chmod go-w {file}, setfacl -b; it must belong to root or to you: chown"
        raise PluginError(f"plug-in not loaded: {why}", where=str(file), hint=hint)


def _metadata_of(distribution: Distribution) -> tuple[Path, ...]:
    found = getattr(distribution, "_path", None)  # PathDistribution: what is on sys.path, also in an archive
    if found is None:
        return ()
    place = Path(str(found))
    return (place, *place.iterdir()) if place.is_dir() else (place,)


def _code_of(module: str) -> Iterator[Path]:
    """Yield the files and directories from which Python can load a module or package, and its compiled files. To find
    them, the packages that it is in are imported."""
    spec = find_spec(module)
    if spec is None:
        return
    roots = spec.submodule_search_locations
    for path in _below(map(Path, roots)) if roots else map(Path, [spec.origin] if spec.origin else []):
        yield path
        if path.suffix == ".py":
            compiled = Path(cache_from_source(str(path)))  # elsewhere with PYTHONPYCACHEPREFIX
            yield from (compiled.parent, compiled)


def _below(roots: Iterable[Path]) -> Iterator[Path]:
    """Yield these places, and everything below those that are directories. Follows links, each directory once."""
    seen: set[str] = set()
    for root in roots:
        yield root  # also in an archive, which is then judged as what leads to it
        for top, names, files in os.walk(root, followlinks=True):
            if (real := os.path.realpath(top)) in seen:
                names.clear()
                continue
            seen.add(real)
            yield from (Path(top) / name for name in (*names, *files))
