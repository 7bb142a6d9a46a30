"""What a view prints on a terminal of a given width, without colour."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from rich.console import Console


def printed(show: Callable[..., object], *what: object, width: int = 80, **more: Any) -> str:
    """Return the lines that ``show(*what, console, **more)`` prints, without spaces at their ends."""
    console = Console(width=width, color_system=None, file=io.StringIO(), record=True)
    show(*what, console, **more)
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())
