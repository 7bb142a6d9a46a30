"""A safe console: text of a store, a tool or a kernel is untrusted, and a terminal obeys control characters."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fslab.names import shown


class SafeConsole(Console):
    """A console that writes no control characters except its own, for colours and for the live table."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments to print, with blanks for control characters."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text.isprintable() or (safe := shown(text)) == text:
                yield segment
            else:
                yield Segment(safe, segment.style)
