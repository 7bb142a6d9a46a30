"""Figures as Vega-Lite specifications: the one grammar for the page in a browser and for SVG and PNG in a paper.

Each module makes one kind of figure from plain values. None computes statistics, reads a store or draws;
colours are CSS variables (``palette``), which a page sets for light, dark and paper, and ``files`` replaces.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Sequence[Mapping[str, Any]]
Spec = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One figure. ``id`` is unique in a page and the name of its file.

    ``alt`` says in words what it shows, for those who do not see it. ``marks`` is how many marks each named layer
    must have when it is drawn: what was measured, nothing lost on the way.
    """

    id: str
    title: str
    caption: str
    alt: str
    spec: Spec
    marks: Mapping[str, int]


def slug(text: str) -> str:
    """A text as a part of an id or a file name: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())
