"""How far each request was from the end of the one before: a histogram per stack, by powers of two."""

from collections.abc import Mapping

from fslab.analysis.request_map import RequestMap
from fslab.report.figures import Figure, _axis
from fslab.report.figures.styles import StackStyles
from fslab.units import format_size

SEQUENTIAL = "none"


def figure(key: str, workload: str, maps: Mapping[str, RequestMap], looks: StackStyles) -> Figure:
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
