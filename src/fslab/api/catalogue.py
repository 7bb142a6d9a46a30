"""What studies can use: the shipped studies, the entries of each registry, also those of plug-ins, and every key."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from fslab.errors import UsageError, nearest
from fslab.storage.filesystems import FileSystem
from fslab.study import load, shipped
from fslab.study.document import options_of

BUILT_IN = "fslab"
STUDIES = "studies"
_PACKAGES = {
    "filesystems": "storage.filesystems",
    "layouts": "storage.layouts",
    "media": "storage.media",
    "machines": "machine.kinds",
    "workloads": "workloads",
    "probes": "probes",
    "features": "features",
    "applications": "applications",
    "faults": "faults",
    "mechanisms": "explain.mechanisms",
    "validity-rules": "validity.trial",
    "campaign-rules": "validity.campaign",
}
KINDS = (STUDIES, *_PACKAGES)


def entries(kind: str) -> list[dict[str, Any]]:
    """Return the entries of one of the ``KINDS``: name, summary, the package it is from, and its details.

    Raises UsageError for another kind.
    """
    if kind == STUDIES:
        return [{"name": name, "summary": load.load(name).title, "from": BUILT_IN} for name in shipped.ids()]
    registry = _registry(kind)
    return [
        {
            "name": name,
            "summary": entry.summary,
            "from": str(registry.plugin(name) or BUILT_IN),
            **_details(entry),
        }
        for name, entry in registry
    ]


def problems(kind: str) -> Iterator[str]:
    """Yield why plug-ins of a kind cannot be used."""
    if kind != STUDIES:
        yield from (str(problem) for problem in _registry(kind).problems())


def _details(entry: Any) -> dict[str, Any]:
    """Return what studies may choose: options of a file system, profiles of a medium, settings of an application."""
    if isinstance(entry, FileSystem):
        return {"options": options_of(entry)}
    profiles, settings = getattr(entry, "profiles", None), getattr(entry, "settings", None)
    return {
        **({"profiles": list(profiles.values())} if profiles else {}),
        **({"settings": {name: list(values) for name, values in settings.items()}} if settings else {}),
    }


def _registry(kind: str) -> Any:
    if kind not in _PACKAGES:
        raise UsageError(f"no kind '{kind}'", hint=nearest(kind, KINDS))
    return import_module(f"fslab.{_PACKAGES[kind]}").REGISTRY
