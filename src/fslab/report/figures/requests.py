"""Requests of the disks: when and where they started, and how far each was from the end of the one before."""

from collections.abc import Mapping
from typing import Any

from fslab.analysis.disk_request_map import INTERVALS, KINDS, RequestMap
from fslab.report.figures import Figure, _axis, styles
from fslab.report.figures.styles import StackStyles
from fslab.units import Unit, format_size

_COLOURS = dict(zip(KINDS, ("heat", "user", "steal", "irq"), strict=True))

_ROW_PIXELS, _LEAST_PIXELS = 7, 60

SEQUENTIAL = "none"


def request_figure(
    key: str, workload: str, maps: Mapping[str, RequestMap], disks: int, looks: StackStyles
) -> Figure:
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
    scale = {"domain": kinds, "range": [styles.colour(_COLOURS[kind]) for kind in kinds]}
    place = _axis.value_axis(Unit.BYTES, title="place on the disk")
    return {
        "x": _axis.quantity("from", "time in the run, s", axis={"grid": False}),
        "x2": {"field": "to"},
        "y": {"field": "at", "type": "ordinal", "sort": "descending", "axis": place},
        "color": _axis.name("kind", scale=scale),
        "tooltip": _axis.tooltip(kind="", at=".4~s", bytes=".3~s"),
    }


def distance_figure(key: str, workload: str, maps: Mapping[str, RequestMap], looks: StackStyles) -> Figure:
    """Return the figure. ``maps``: stack label → requests of its first disk in one trial."""
    present = looks.only(list(maps))
    counts = {label: _counts(each) for label, each in maps.items()}
    reached = _every_power({distance for each in counts.values() for distance in each})
    data = [
        {
            "stack": label,
            "distance": _named(distance),
            "share": _axis.rounded(100 * each.get(distance, 0) / sum(each.values())),
        }
        for label, each in counts.items()
        if each
        for distance in reached
    ]
    title = f"{workload}: distance between requests"
    mark = {"type": "line", "point": {"size": 30}, "strokeWidth": 1.6, "interpolate": "linear"}
    order = [_named(distance) for distance in reached]
    spec = _axis.base(
        title, data={"values": data}, height=180,
        layer=[
            _axis.layer(
                "stacks", mark,
                x=_axis.names("distance", order, 90, title="distance, at least", labelAngle=-45),
                y=_axis.quantity("share", "share of the requests, %", axis={"tickCount": 4}),
                color=present.colour(), strokeDash=present.dash(),
                tooltip=_axis.tooltip(stack="", distance="", share=".3~r"),
            )
        ],
    )  # fmt: skip
    return Figure(
        id=key,
        title=title,
        spec=spec,
        caption=f"From the end of a request to the start of the next, in powers of two. '{SEQUENTIAL}': sequential.",
        alt=f"Share of the requests of {workload} by their distance from the one before, "
        f"a line for each of {', '.join(present.labels)}.",
        marks={"stacks": len([each for each in counts.values() if each])},
    )


def _every_power(distances: set[int]) -> list[int]:
    """Return 0, if it is among the distances, and all powers of two from the smallest to the largest."""
    exponents = [distance.bit_length() - 1 for distance in distances if distance]
    powers = [1 << each for each in range(min(exponents), max(exponents) + 1)] if exponents else []
    return [0] * (0 in distances) + powers


def _counts(requests: RequestMap) -> dict[int, int]:
    """Return distance → requests of all kinds."""
    found: dict[int, int] = {}
    for each in requests.distances.values():
        for distance, count in each.items():
            found[distance] = found.get(distance, 0) + count
    return found


def _named(distance: int) -> str:
    return format_size(distance) if distance else SEQUENTIAL
