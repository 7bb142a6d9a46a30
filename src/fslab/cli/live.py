"""The live view of a campaign on a terminal: a bar with the remaining time, and the last result.

Only shows progress. The store contains the results: ``fslab results`` shows them while the campaign runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.text import Text

from fslab import Observer
from fslab.cli.progress import Lines, look_lines, result_of, waiting
from fslab.trial_record import Status, TrialRecord
from fslab.units import format_duration

if TYPE_CHECKING:
    from rich.console import Console

    from fslab.analysis.further_trials import InterimResult
    from fslab.cell import Cell
    from fslab.store.campaign import Campaign

_TICKS = "▏▎▍▌▋▊▉█"


def shown(console: Console, *, quiet: bool, silent: bool) -> Observer:
    """Return the observer that shows progress: a bar on a terminal, else a line per trial; none if ``silent``."""
    if silent:
        return Observer()
    return LiveView(console) if console.is_terminal and not quiet else Lines(console)


class LiveView(Lines):
    """Shows a bar with the remaining time, below the last result and messages."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as Screen

        super().__init__(console)
        self.measured = 0
        self.begun = time.monotonic()
        self.current = self.last = self.waiting = ""
        self.screen = Screen(console=console, transient=True, refresh_per_second=4, get_renderable=self._view)

    def __enter__(self) -> Self:
        self.screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.screen.stop()

    def campaign_started(self, campaign: Campaign, *, done: int, total: int, cells: int) -> None:
        super().campaign_started(campaign, done=done, total=total, cells=cells)
        self.begun = time.monotonic()

    def trial_started(self, cell: Cell, block: int) -> None:
        self.current = f"{cell.workload.name} on {cell.stack.name}, trial {block + 1}"

    def trial_ended(self, record: TrialRecord) -> None:
        self.done += 1
        self.measured += 1
        self.rates.enter(record)
        name = f"{record.cell.workload.name} on {record.cell.stack.name}"
        self.last = f"{name}: {result_of(record)}"
        if record.status is not Status.OK and record.error:
            self.note(f"{name}: {record.error}")

    def looked(self, look: InterimResult, *, total: int) -> None:
        """Print the settled and the open comparisons above the bar; extend it by the newly planned trials."""
        self.total = total
        for line in look_lines(look):
            self.note(line)

    def waits(self, whom: str, waited_s: float) -> None:
        self.waiting = waiting(whom, waited_s)

    def turn_begins(self, waited_s: float) -> None:
        """Exclude the waiting time from the campaign's elapsed time."""
        self.waiting = ""
        self.begun += waited_s

    def _view(self) -> Text:
        width = max(self.console.size.width - 1, 20)
        lines = (self.last, self._bar() if self.total else "", self.rates.words(), self.waiting)
        return Text("\n".join(line[:width] for line in lines if line), overflow="ellipsis", no_wrap=True)

    def _bar(self) -> str:
        elapsed_s = time.monotonic() - self.begun
        left = ""
        if self.measured:
            left = (
                f" · about {format_duration(elapsed_s / self.measured * max(0, self.total - self.done))} left"
            )
        bar = _filled_bar(self.done / self.total, 20)
        return f"{bar} {self.done}/{self.total} · {format_duration(elapsed_s)}{left} · {self.current}"


def _filled_bar(share: float, width: int) -> str:
    whole = min(share, 1.0) * width
    full = int(whole)
    part = _TICKS[int((whole - full) * len(_TICKS))] if full < width else ""
    return ("█" * full + part).ljust(width)
