"""The live view of a campaign on a terminal: the matrix of results so far, and the remaining time.

Only shows progress. The store contains the results.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from rich.text import Text

from fslab import Observer
from fslab.api.machine_noise import LoopRates
from fslab.cli.progress import Lines, look_lines, replaced_words, waiting
from fslab.record import Status, TrialRecord
from fslab.report.matrix_terminal import Matrix
from fslab.units import counted, format_duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from fslab.analysis.interim import InterimResult
    from fslab.cell import Cell
    from fslab.store.campaign import Campaign

_TICKS = "▏▎▍▌▋▊▉█"


def shown(console: Console, *, quiet: bool, silent: bool) -> Observer:
    """Return the observer that shows progress: the matrix on a terminal, else a line per trial; none if ``silent``."""
    if silent:
        return Observer()
    return LiveView(console) if console.is_terminal and not quiet else Lines(console)


class LiveView(Observer):
    """Shows the matrix, and below it a bar with the remaining time."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as Screen

        self.console = console
        self.matrix: Matrix | None = None
        self.done = self.total = self.measured = 0
        self.begun = time.monotonic()
        self.current = self.waiting = ""
        self.rates = LoopRates()
        self.screen = Screen(console=console, transient=True, refresh_per_second=4, get_renderable=self._view)

    def __enter__(self) -> Self:
        self.screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.screen.stop()

    def campaign_started(
        self, campaign: Campaign, *, done: int, total: int, stored: Sequence[TrialRecord] = ()
    ) -> None:
        self.note(
            f"campaign {campaign.id}: {counted(total, 'trial')} of {counted(len(campaign.cells), 'cell')}"
        )
        self.done, self.total, self.begun = done, total, time.monotonic()
        self.matrix = Matrix(cells=campaign.cells, stopping=campaign.stopping)
        self.matrix.fill(stored)

    def trial_started(self, cell: Cell, block: int) -> None:
        self.current = f"{cell.workload.name} on {cell.stack.name}, trial {block + 1}"
        if self.matrix is not None:
            self.matrix.running = cell.id

    def trial_ended(self, record: TrialRecord) -> None:
        self.done += 1
        self.measured += 1
        self.rates.enter(record)
        if self.matrix is not None:
            self.matrix.enter(record)
        if record.status is not Status.OK and record.error:
            self.note(f"{record.cell.workload.name} on {record.cell.stack.name}: {record.error}")

    def looked(self, look: InterimResult, *, total: int) -> None:
        """Print the settled and the open comparisons above the matrix; extend the bar by the newly planned trials."""
        self.total = total
        for line in look_lines(look):
            self.note(line)

    def replaces(self, *, invalid: int, more: int, total: int) -> None:
        """Print how many trials are invalid and replaced; extend the bar."""
        self.total = total
        self.note(replaced_words(invalid, more))

    def waits(self, whom: str, waited_s: float) -> None:
        self.waiting = waiting(whom, waited_s)

    def turn_begins(self, waited_s: float) -> None:
        """Exclude the waiting time from the campaign's elapsed time."""
        self.waiting = ""
        self.begun += waited_s

    def note(self, text: str) -> None:
        self.console.print(text, markup=False)

    def _view(self) -> RenderableType:
        from rich.console import Group as Pile

        if self.matrix is None:
            return Text("")
        size = self.console.size
        shown: list[RenderableType] = [
            self.matrix.table(size.width, size.height),
            Text(""),
            self._bar(size.width),
        ]
        below = (self.rates.words(), self.waiting)
        return Pile(*shown, *(Text(line, overflow="ellipsis", no_wrap=True) for line in below if line))

    def _bar(self, width: int) -> Text:
        elapsed_s = time.monotonic() - self.begun
        left = ""
        if self.measured:
            left = (
                f" · about {format_duration(elapsed_s / self.measured * max(0, self.total - self.done))} left"
            )
        told = f" {self.done}/{self.total} · {format_duration(elapsed_s)}{left} · {self.current}"
        bar = _filled_bar(self.done / self.total if self.total else 0.0, 20)
        return Text(f"{bar}{told}"[: max(width - 1, 20)], overflow="ellipsis", no_wrap=True)


def _filled_bar(share: float, width: int) -> str:
    whole = min(share, 1.0) * width
    full = int(whole)
    part = _TICKS[int((whole - full) * len(_TICKS))] if full < width else ""
    return ("█" * full + part).ljust(width)
