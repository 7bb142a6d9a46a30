"""What is printed: text of a store, a tool or a kernel may be anybody's, and a terminal obeys control characters."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fslab.names import shown


class SafeConsole(Console):
    """A console that writes no control character but its own: colours, and movements of the live table."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The pieces of what is to be printed."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text.isprintable() or (safe := shown(text)) == text:
                yield segment
            else:
                yield Segment(safe, segment.style)
