"""The heat map of a campaign as a figure for a paper.

A page shows the same values as a table instead, because a table is accessible to all readers.
"""

from collections.abc import Sequence
from typing import Any

from fslab.report.figures import Figure, _axis
from fslab.report.page.model import HeatRow

_COLOUR = {
    "field": "share",
    "type": "quantitative",
    "legend": {"title": "share of the best", "values": [0, 0.5, 1], "format": ".2f", "gradientLength": 80},
    "scale": {"domain": [0, 1], "range": ["#f2f5f8", "#86b9e6"]},
}
# Inside its tile, because a neighbour's frame would lie on the same line.
_FRAME = {
    "type": "rect", "width": {"band": 0.93}, "height": {"band": 0.8}, "filled": False,
    "stroke": "#1b1f24", "strokeDash": [3, 3], "strokeWidth": 1,
}  # fmt: skip
_LAYERS: list[dict[str, Any]] = [
    _axis.layer("tile", {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 2}, color=_COLOUR),
    _axis.layer("undecided", _FRAME) | {"transform": [{"filter": "!datum.decided"}]},
    _axis.layer(
        "share",
        {"type": "text", "fontSize": 12, "color": "#1b1f24"},
        text={"field": "share", "format": ".2f"},
    ),
]


def figure(key: str, rows: Sequence[HeatRow], stacks: Sequence[str]) -> Figure | None:
    """Return the figure: a row per workload and metric, a column per stack. Undecided tiles have a dashed frame. None
    if nothing can be compared."""
    names = {f"{row.workload}, {row.metric}": row for row in rows}
    data = [
        {"row": name, "stack": tile.stack, "share": _axis.rounded(tile.share), "decided": tile.decided}
        for name, row in names.items()
        for tile in row.tiles
        if tile.share is not None
    ]
    if not data:
        return None
    across = _axis.names("stack", stacks, 240, orient="top", labelAngle=-40, labelAlign="left")
    spec = _axis.base(
        "Each stack relative to the best median of each workload",
        width={"step": 92}, height={"step": 26}, data={"values": data},
        encoding={"x": across, "y": _axis.names("row", [*names], 300)}, layer=_LAYERS,
    )  # fmt: skip
    return Figure(
        id=key,
        title="Relative to the best of each workload",
        spec=spec,
        caption="1.00: the best median; 0.50: half as good. Dashed: may equal the best.",
        alt="Each stack relative to the best median of each workload.",
        marks={"tile": len(data), "share": len(data), "undecided": sum(not tile["decided"] for tile in data)},
    )
