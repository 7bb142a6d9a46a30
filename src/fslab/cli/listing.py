"""``fslab list``: studies, file systems, layouts, media, workloads, probes and features that there are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from fslab.cli.common import JsonOption, console, print_json


class Kind(StrEnum):
    """What can be listed."""

    STUDIES = "studies"
    FILESYSTEMS = "filesystems"
    LAYOUTS = "layouts"
    MEDIA = "media"
    WORKLOADS = "workloads"
    PROBES = "probes"
    FEATURES = "features"


def listing(
    kind: Annotated[Kind | None, typer.Argument(help="List only these; default: everything.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List what studies can use. `docs/study-file.md` (or: fslab schema --markdown) has every key."""
    kinds = [kind] if kind else list(Kind)
    entries = {each.value: _entries(each) for each in kinds}
    if as_json:
        print_json(entries)
        return
    from rich.table import Table

    screen = console()
    for title, rows in entries.items():
        table = Table(
            title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=False
        )
        for row in rows:
            table.add_row(f"  {row['name']}", f"[dim]{row['summary']}[/dim]")
        screen.print(table)


def _entries(kind: Kind) -> list[dict[str, Any]]:
    if kind is Kind.STUDIES:
        return _studies()
    from fslab.features import REGISTRY as FEATURES
    from fslab.probes import REGISTRY as PROBES
    from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
    from fslab.storage.layouts import REGISTRY as LAYOUTS
    from fslab.storage.media import REGISTRY as MEDIA
    from fslab.workloads import REGISTRY as WORKLOADS

    registry: Any = {
        Kind.FILESYSTEMS: FILESYSTEMS,
        Kind.LAYOUTS: LAYOUTS,
        Kind.MEDIA: MEDIA,
        Kind.WORKLOADS: WORKLOADS,
        Kind.PROBES: PROBES,
        Kind.FEATURES: FEATURES,
    }[kind]
    return [{"name": name, "summary": entry.summary} for name, entry in registry]


def _studies() -> list[dict[str, Any]]:
    from fslab.study import load, shipped

    return [{"name": name, "summary": load.load(name).title} for name in shipped.ids()]
