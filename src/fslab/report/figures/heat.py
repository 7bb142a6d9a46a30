"""The heat map of a campaign as a file for a paper; a page shows the same as a table, which everybody can read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis

_COLOUR = {
    "field": "share", "type": "quantitative", "legend": None,
    "scale": {"domain": [0, 1], "range": ["#f2f5f8", "#86b9e6"]},
}  # fmt: skip
_FRAME = {"type": "rect", "filled": False, "stroke": "#1b1f24", "strokeDash": [3, 3], "strokeWidth": 1}
_LAYERS: list[dict[str, Any]] = [
    _axis.layer("tile", {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 2}, color=_COLOUR),
    _axis.layer("undecided", _FRAME) | {"transform": [{"filter": "!datum.decided"}]},
    _axis.layer(
        "share",
        {"type": "text", "fontSize": 12, "color": "#1b1f24"},
        text={"field": "share", "format": ".2f"},
    ),
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
    across = _axis.names("stack", stacks, 90, orient="top", labelAngle=0)
    spec = _axis.base(
        "Each stack relative to the best median of each workload",
        width={"step": 92}, height={"step": 26}, data={"values": data},
        encoding={"x": across, "y": _axis.names("row", rows, 300)}, layer=_LAYERS,
    )  # fmt: skip
    return Figure(
        id=key,
        title="Relative to the best of each workload",
        spec=spec,
        caption="1.00: the best median; 0.50: half as good. Dashed: may equal the best.",
        alt="Each stack relative to the best median of each workload.",
        marks={"tile": len(data), "share": len(data), "undecided": sum(not tile.decided for tile in tiles)},
    )
