"""The heat map of a campaign as a file for a paper; a page shows the same as a table, which everybody can read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis

_LAYERS: list[dict[str, Any]] = [
    {
        "name": "tile",
        "mark": {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 2},
        "encoding": {
            "color": {
                "field": "share",
                "type": "quantitative",
                "legend": None,
                "scale": {"domain": [0, 1], "range": ["#f2f5f8", "#86b9e6"]},
            }
        },
    },
    {
        "name": "undecided",
        "transform": [{"filter": "!datum.decided"}],
        "mark": {
            "type": "rect",
            "filled": False,
            "stroke": "#1b1f24",
            "strokeDash": [3, 3],
            "strokeWidth": 1,
        },
    },
    {
        "name": "share",
        "mark": {"type": "text", "fontSize": 12, "color": "#1b1f24"},
        "encoding": {"text": {"field": "share", "format": ".2f"}},
    },
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """How a stack does against the best of its row: ``share`` 1 is the best, 0.5 half as good.

    ``decided``: it is the best, or shown to be worse than it.
    """

    row: str
    stack: str
    share: float
    decided: bool


def figure(key: str, tiles: Sequence[Tile], rows: Sequence[str], stacks: Sequence[str]) -> Figure:
    """Workloads down, stacks across; what is undecided has a dashed frame."""
    data = [
        {"row": tile.row, "stack": tile.stack, "share": _axis.rounded(tile.share), "decided": tile.decided}
        for tile in tiles
    ]
    spec = {
        **_axis.base(),
        "width": {"step": 92},
        "height": {"step": 26},
        "description": "How each stack does against the best of each workload",
        "usermeta": {},
        "data": {"values": data},
        "encoding": {
            "x": {
                "field": "stack",
                "type": "nominal",
                "sort": list(stacks),
                "title": None,
                "axis": {"orient": "top", "labelAngle": 0, "grid": False, "labelLimit": 90},
            },
            "y": {
                "field": "row",
                "type": "nominal",
                "sort": list(rows),
                "title": None,
                "axis": {"grid": False, "labelLimit": 300},
            },
        },
        "layer": _LAYERS,
    }
    return Figure(
        id=key,
        title="Against the best of each workload",
        spec=spec,
        caption="1.00: the best median; 0.50: half as good. Dashed: may equal the best.",
        alt="How each stack does against the best of each workload.",
        marks={"tile": len(data), "share": len(data), "undecided": sum(not tile.decided for tile in tiles)},
    )
