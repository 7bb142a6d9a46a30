"""Writes figures as SVG and PNG files without a browser (vl-convert), in the colours for paper.

Must not depend on the kind of a figure.
"""

import json
import textwrap
from collections.abc import Iterable
from pathlib import Path

from fslab import safe_output
from fslab.names import file_name
from fslab.report.figures import Figure, Spec, styles

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
