"""Figures as Vega-Lite specifications, for the page in a browser and for SVG and PNG files in a paper.

Each module makes one kind of figure from plain values. No module computes statistics, reads a store or draws. Colours
are CSS variables (``styles``). A page sets them for light, dark and paper; ``paper`` replaces them with colours.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One figure. ``id`` is unique in a page and is the name of its file.

    ``alt``: a description for people who cannot see the figure. ``marks``: layer name → number of marks that the drawn
    layer must have, to check that no measured value is lost.
    """

    id: str
    title: str
    caption: str
    alt: str
    spec: Spec
    marks: Mapping[str, int]


def slug(text: str) -> str:
    """Return a text as part of an id or a file name: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())
