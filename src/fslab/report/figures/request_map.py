"""Where on the disk requests started, over the time of a run (after seekwatcher's maps): a panel per stack."""

from collections.abc import Mapping
from typing import Any

from fslab.analysis.request_map import INTERVALS, KINDS, RequestMap
from fslab.report.figures import Figure, _axis, palette
from fslab.report.figures.styles import StackStyles
from fslab.units import Unit

_COLOURS = dict(zip(KINDS, ("heat", "user", "steal", "irq"), strict=True))
_ROW_PIXELS, _LEAST_PIXELS = 7, 60


def figure(key: str, workload: str, maps: Mapping[str, RequestMap], disks: int, looks: StackStyles) -> Figure:
    """Return the figure. ``maps``: stack label → requests of its first disk in one trial; ``disks``: of how many."""
    present = looks.only(list(maps))
    data = [row for label, each in maps.items() for row in _rows(label, each)]
    most = max(len(each.regions) for each in maps.values())
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in data)]
    panel = {
        "name": "requests", "width": _axis.WIDTH, "height": max(_LEAST_PIXELS, _ROW_PIXELS * most),
        "mark": {"type": "rect"}, "encoding": _encoding(kinds),
    }  # fmt: skip
    title = f"{workload}: requests over time and place"
    spec = _axis.base(
        title, data={"values": data}, facet=_axis.panels(present.labels), spacing=14, spec=panel,
        resolve={"scale": {"y": "independent", "x": "independent"}},
    )  # fmt: skip
    which = f" of the first of {disks} disks" if disks > 1 else ""
    return Figure(
        id=key,
        title=title,
        spec=spec,
        caption=f"Where requests{which} started in the first usable trial, from the start of the run until all was "
        "written and the file system unmounted. A mark says that there were requests, not how many. Parts of the disk "
        "where no request started are left out.",
        alt=f"Requests of {workload} by time and place, a panel for each of {', '.join(present.labels)}.",
        marks={"requests": len(data)},
    )


def _rows(label: str, requests: RequestMap) -> list[dict[str, Any]]:
    """Return a mark for each cell. Kinds that share an interval and a place stand side by side: none hides another."""
    step = requests.seconds / INTERVALS
    sharing: dict[tuple[int, int], list[str]] = {}
    cells = sorted(requests.cells, key=lambda cell: KINDS.index(cell[0]))
    for kind, interval, region, _ in cells:
        sharing.setdefault((interval, region), []).append(kind)
    rows = []
    for kind, interval, region, size in cells:
        kinds = sharing[interval, region]
        width = step / len(kinds)
        start = step * interval + width * kinds.index(kind)
        rows.append(
            {
                "stack": label, "kind": kind, "from": _axis.rounded(start), "to": _axis.rounded(start + width),
                "at": requests.regions[region], "bytes": size,
            }
        )  # fmt: skip
    return rows


def _encoding(kinds: list[str]) -> dict[str, Any]:
    scale = {"domain": kinds, "range": [palette.colour(_COLOURS[kind]) for kind in kinds]}
    place = _axis.value_axis(Unit.BYTES, title="place on the disk")
    return {
        "x": _axis.quantity("from", "time in the run, s", axis={"grid": False}),
        "x2": {"field": "to"},
        "y": {"field": "at", "type": "ordinal", "sort": "descending", "axis": place},
        "color": _axis.name("kind", scale=scale),
        "tooltip": _axis.tooltip(kind="", at=".4~s", bytes=".3~s"),
    }
