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
    panel = {
        "name": "requests", "width": _axis.WIDTH, "height": max(_LEAST_PIXELS, _ROW_PIXELS * most),
        "mark": {"type": "rect"}, "encoding": _encoding(),
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
        caption=f"The requests{which} in the first usable trial: time to the right, place on the disk upwards. "
        "Parts of the disk that no request touched are left out.",
        alt=f"Requests of {workload} by time and place, a panel for each of {', '.join(present.labels)}.",
        marks={"requests": len(data)},
    )


def _rows(label: str, requests: RequestMap) -> list[dict[str, Any]]:
    step = requests.seconds / INTERVALS
    return [
        {
            "stack": label,
            "kind": kind,
            "from": round(step * interval, 4),
            "to": round(step * (interval + 1), 4),
            "at": requests.regions[region],
            "bytes": size,
        }
        for kind, interval, region, size in sorted(requests.cells, key=lambda cell: KINDS.index(cell[0]))
    ]


def _encoding() -> dict[str, Any]:
    scale = {"domain": list(KINDS), "range": [palette.colour(_COLOURS[kind]) for kind in KINDS]}
    place = _axis.value_axis(Unit.BYTES, title="place on the disk")
    return {
        "x": _axis.quantity("from", "time in the run, s", axis={"grid": False}),
        "x2": {"field": "to"},
        "y": {"field": "at", "type": "ordinal", "sort": "descending", "axis": place},
        "color": _axis.name("kind", scale=scale),
        "tooltip": _axis.tooltip(kind="", at=".4~s", bytes=".3~s"),
    }
