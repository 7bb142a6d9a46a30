"""What work costs: bytes written per byte of the application, CPU time by kind, and requests of the disks.

Requests are shown by when and where they started, and by how far each was from the end of the one before.
"""

from collections.abc import Mapping
from typing import Any

from fslab.analysis.disk_request_map import INTERVALS, RequestMap
from fslab.analysis.disk_request_map import KINDS as REQUESTS
from fslab.report.figures import Figure, styles
from fslab.report.figures.styles import StackStyles
from fslab.units import Unit, format_size

_PARTS = {"to the device": "system", "to the flash": "irq"}

KINDS = {
    "user": "programs",
    "system": "the kernel",
    "irq": "interrupts",
    "iowait": "idle, waiting for I/O",
    "steal": "taken by the hypervisor",
}


def amplification_figure(
    key: str, workload: str, factors: Mapping[str, tuple[float, float]], looks: StackStyles
) -> Figure:
    """Return the figure.

    ``factors``: stack label → write amplification of the file system, and that of the device; medians of the trials.
    """
    present = looks.only(list(factors))
    data = [
        {"stack": label, "part": part, "factor": styles.rounded(value)}
        for label, (of_filesystem, of_device) in factors.items()
        for part, value in zip(_PARTS, (of_filesystem, of_filesystem * of_device), strict=True)
    ]
    title = f"{workload}: write amplification"
    scale = {"domain": list(_PARTS), "range": [styles.colour(name) for name in _PARTS.values()]}
    axis_title = "bytes written per byte of the application"
    rule = {"type": "rule", "strokeDash": [4, 3]}
    return styles.figure(
        key, title, data={"values": data}, height=44 * len(factors),
        layer=[
            styles.layer(
                "factors", {"type": "bar"},
                y=styles.names("stack", present.labels, 260),
                yOffset=styles.name("part", sort=list(_PARTS)),
                x=styles.quantity("factor", axis_title),
                color=styles.name("part", scale=scale),
                tooltip=styles.tooltip(stack="", part="", factor=".3~r"),
            ),
            styles.layer("one", rule, [{"factor": 1}], x=styles.quantity("factor", axis_title)),
        ],
        caption="What the file system writes to the device, and the SSD to its flash. The dashed line: what the "
        "application wrote.",
        alt=f"Write amplification of {workload} by file system and device, for {', '.join(present.labels)}.",
        marks={"factors": len(data), "one": 1},
    )  # fmt: skip


def cpu_figure(
    key: str, workload: str, shares: Mapping[str, Mapping[str, float]], looks: StackStyles
) -> Figure:
    """Return the figure. ``shares``: stack label → key of ``KINDS`` → percent of all CPUs, mean of usable trials."""
    present = looks.only(list(shares))
    used = [kind for kind in KINDS if any(each.get(kind, 0) >= 0.5 for each in shares.values())]
    data = [
        {
            "stack": stack,
            "kind": KINDS[kind],
            "order": order,
            "percent": styles.rounded(shares[stack].get(kind, 0.0)),
        }
        for stack in present.labels
        for order, kind in enumerate(used)
    ]
    bars = styles.layer("share", {"type": "bar", "height": 15}, **_encoding(present, used))
    return styles.figure(
        key,
        f"{workload}: CPU time",
        height=24 * max(len(present.labels), 1),
        data={"values": data},
        layer=[bars],
        caption="Mean of the usable trials, while the tool ran; the rest of the bar to 100 % was idle.",
        alt=f"CPU time of {workload}: "
        + "; ".join(
            f"{stack} " + ", ".join(f"{KINDS[kind]} {shares[stack].get(kind, 0):.0f} %" for kind in used)
            for stack in present.labels
        )
        + ".",
        marks={"share": len(data)},
    )


def _encoding(present: StackStyles, used: list[str]) -> dict[str, Any]:
    colours = {"domain": [KINDS[kind] for kind in used], "range": [styles.colour(kind) for kind in used]}
    return {
        "y": styles.names("stack", present.labels, 260),
        "x": styles.quantity(
            "percent",
            "share of all CPUs",
            stack="zero",
            axis=styles.value_axis(Unit.PERCENT),
            scale={"domainMin": 0},
        ),
        "order": {"field": "order"},
        "color": styles.name("kind", scale=colours),
        "tooltip": [*styles.tooltip(stack="", kind=""), {"field": "percent", "title": "%", "format": ".3~r"}],
    }


_COLOURS = dict(zip(REQUESTS, ("heat", "user", "steal", "irq"), strict=True))
_ROW_PIXELS, _LEAST_PIXELS = 7, 60
SEQUENTIAL = "none"


def request_figure(
    key: str, workload: str, maps: Mapping[str, RequestMap], disks: int, looks: StackStyles
) -> Figure:
    """Return the figure. ``maps``: stack label → requests of its first disk in one trial; ``disks``: of how many."""
    present = looks.only(list(maps))
    data = [row for label, each in maps.items() for row in _rows(label, each)]
    most = max(len(each.regions) for each in maps.values())
    kinds = [kind for kind in REQUESTS if any(row["kind"] == kind for row in data)]
    panel = {
        "name": "requests", "width": styles.WIDTH, "height": max(_LEAST_PIXELS, _ROW_PIXELS * most),
        "mark": {"type": "rect"}, "encoding": _request_encoding(kinds),
    }  # fmt: skip
    which = f" of the first of {disks} disks" if disks > 1 else ""
    return styles.figure(
        key,
        f"{workload}: requests over time and place",
        data={"values": data},
        facet=styles.panels(present.labels),
        spacing=14,
        spec=panel,
        resolve={"scale": {"y": "independent", "x": "independent"}},
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
    cells = sorted(requests.cells, key=lambda cell: REQUESTS.index(cell[0]))
    for kind, interval, region, _ in cells:
        sharing.setdefault((interval, region), []).append(kind)
    rows = []
    for kind, interval, region, size in cells:
        kinds = sharing[interval, region]
        width = step / len(kinds)
        start = step * interval + width * kinds.index(kind)
        rows.append(
            {
                "stack": label, "kind": kind, "from": styles.rounded(start), "to": styles.rounded(start + width),
                "at": requests.regions[region], "bytes": size,
            }
        )  # fmt: skip
    return rows


def _request_encoding(kinds: list[str]) -> dict[str, Any]:
    scale = {"domain": kinds, "range": [styles.colour(_COLOURS[kind]) for kind in kinds]}
    place = styles.value_axis(Unit.BYTES, title="place on the disk")
    return {
        "x": styles.quantity("from", "time in the run, s", axis={"grid": False}),
        "x2": {"field": "to"},
        "y": {"field": "at", "type": "ordinal", "sort": "descending", "axis": place},
        "color": styles.name("kind", scale=scale),
        "tooltip": styles.tooltip(kind="", at=".4~s", bytes=".3~s"),
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
            "share": styles.rounded(100 * each.get(distance, 0) / sum(each.values())),
        }
        for label, each in counts.items()
        if each
        for distance in reached
    ]
    mark = {"type": "line", "point": {"size": 30}, "strokeWidth": 1.6, "interpolate": "linear"}
    order = [_named(distance) for distance in reached]
    return styles.figure(
        key, f"{workload}: distance between requests", data={"values": data}, height=180,
        layer=[
            styles.layer(
                "stacks", mark,
                x=styles.names("distance", order, 90, title="distance, at least", labelAngle=-45),
                y=styles.quantity("share", "share of the requests, %", axis={"tickCount": 4}),
                color=present.colour(), strokeDash=present.dash(),
                tooltip=styles.tooltip(stack="", distance="", share=".3~r"),
            )
        ],
        caption=f"From the end of a request to the start of the next, in powers of two. '{SEQUENTIAL}': sequential.",
        alt=f"Share of the requests of {workload} by their distance from the one before, "
        f"a line for each of {', '.join(present.labels)}.",
        marks={"stacks": len([each for each in counts.values() if each])},
    )  # fmt: skip


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
