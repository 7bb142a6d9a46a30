"""Figures for a paper: SVG and PNG files without a browser (vl-convert), in the colours for paper; and the heat map.

A page shows the heat map as a table instead, because a table is accessible to all readers.
"""

import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fslab import safe_output
from fslab.names import file_name
from fslab.report.figures import Figure, Spec, styles
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
    styles.layer("tile", {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 2}, color=_COLOUR),
    styles.layer("undecided", _FRAME) | {"transform": [{"filter": "!datum.decided"}]},
    styles.layer(
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
        {"row": name, "stack": tile.stack, "share": styles.rounded(tile.share), "decided": tile.decided}
        for name, row in names.items()
        for tile in row.tiles
        if tile.share is not None
    ]
    if not data:
        return None
    across = styles.names("stack", stacks, 240, orient="top", labelAngle=-40, labelAlign="left")
    return styles.figure(
        key, "Relative to the best of each workload",
        description="Each stack relative to the best median of each workload",
        width={"step": 92}, height={"step": 26}, data={"values": data},
        encoding={"x": across, "y": styles.names("row", [*names], 300)}, layer=_LAYERS,
        caption="1.00: the best median; 0.50: half as good. Dashed: may equal the best.",
        alt="Each stack relative to the best median of each workload.",
        marks={"tile": len(data), "share": len(data), "undecided": sum(not tile["decided"] for tile in data)},
    )  # fmt: skip


VEGA_LITE = "6.4"
LINE = 100  # characters of a caption
_SCALE = 2  # pixels of a PNG per point: sharp in print at column width


def write(figures: Iterable[Figure], directory: Path) -> list[Path]:
    """Write ``ID.svg`` and ``ID.png`` of each figure, with its caption. Returns the paths.

    UsageError if they cannot be written.
    """
    import vl_convert  # noqa: PLC0415 - 30 MB that only figures need

    safe_output.make_directory(directory)
    written: list[Path] = []
    for figure in figures:
        spec = {
            **on_paper(figure.spec),
            "background": styles.LIGHT["paper"],
            "title": {"text": figure.title, "subtitle": textwrap.wrap(figure.caption, LINE)},
        }
        name = file_name(figure.id)
        svg, png = directory / f"{name}.svg", directory / f"{name}.png"
        safe_output.replace(svg, vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE))
        safe_output.replace(png, vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=_SCALE))
        written += [svg, png]
    return written


def on_paper(spec: Spec) -> Spec:
    """Return a specification with the colours for paper instead of CSS variables. Names that contain one stay."""
    colours = {
        f'"{styles.colour(name)}"': f'"{value}"' for name, value in styles.variables(dark=False).items()
    }
    text = json.dumps(spec)
    for variable, colour in colours.items():
        text = text.replace(variable, colour)
    made: Spec = json.loads(text)
    return made
