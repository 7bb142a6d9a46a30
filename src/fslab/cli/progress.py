"""Live progress of a campaign: a bar on a terminal, a line per trial elsewhere, nothing when asked to be quiet.

Shows only; what is true stands in the store.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.markup import escape

from fslab.cell import Cell
from fslab.record import Status, TrialRecord
from fslab.store.campaign import Campaign
from fslab.units import format_duration, format_value
from fslab.workloads import REGISTRY as WORKLOADS

if TYPE_CHECKING:
    from rich.console import Console


def result_of(record: TrialRecord) -> str:
    """The headline of a trial in a few words: ``61.7k IOPS``, or why there is none."""
    if record.status in {Status.FAILED, Status.UNSUPPORTED}:
        return record.status_text
    workload = WORKLOADS.get(record.cell.workload.tool)
    headline = workload.headline(workload.parse_parameters(record.cell.workload.parameters))
    values = [record.metrics[name] for name in headline if name in record.metrics]
    shown = ", ".join(format_value(value.value, value.unit) for value in values)
    return shown if record.status is Status.OK else f"{shown} (invalid)"


class Quiet:
    """Says nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def campaign_begins(self, campaign: Campaign, *, done: int, total: int) -> None:
        """Nothing."""

    def trial_begins(self, cell: Cell, block: int) -> None:
        """Nothing."""

    def trial_ended(self, record: TrialRecord) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


class Lines(Quiet):
    """One line per trial, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.done = self.total = self.blocks = 0

    def campaign_begins(self, campaign: Campaign, *, done: int, total: int) -> None:
        """Name the campaign."""
        self.done, self.total, self.blocks = done, total, campaign.trials
        kept = f", {done} already done" if done else ""
        self.console.print(f"campaign {campaign.id}: {total} trials of {len(campaign.cells)} cells{kept}")

    def trial_ended(self, record: TrialRecord) -> None:
        """One line."""
        self.done += 1
        cell = record.cell
        self.console.print(
            f"[{self.done}/{self.total}] {cell.workload.name} on {cell.stack.name}: {result_of(record)} "
            f"({format_duration(record.duration_s)})",
            markup=False,
            soft_wrap=True,
        )
        if record.error:
            self.console.print(f"    {record.error}", markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """One line."""
        self.console.print(text, markup=False, soft_wrap=True)


class Bar(Quiet):
    """A bar with the running cell, elapsed and remaining time, and the latest result."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[remaining]}"), TextColumn("[dim]{task.fields[latest]}[/dim]"),
            console=console, transient=True, refresh_per_second=4,
        )  # fmt: skip
        self.task = self.progress.add_task("", total=None, remaining="", latest="")
        self.done = self.total = self.measured = 0
        self.begun = time.monotonic()

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def campaign_begins(self, campaign: Campaign, *, done: int, total: int) -> None:
        """Name the campaign and set the bar's length."""
        self.progress.console.print(f"campaign {campaign.id}: {total} trials of {len(campaign.cells)} cells")
        self.done, self.total = done, total
        self.progress.update(self.task, total=total, completed=done)
        self.begun = time.monotonic()

    def trial_begins(self, cell: Cell, block: int) -> None:
        """Show the cell."""
        del block
        self.progress.update(self.task, description=escape(f"{cell.workload.name} on {cell.stack.name}"))

    def trial_ended(self, record: TrialRecord) -> None:
        """Show its result and what time is left."""
        self.done += 1
        self.measured += 1
        left = (time.monotonic() - self.begun) / self.measured * (self.total - self.done)
        self.progress.update(
            self.task, completed=self.done, remaining=f"~{format_duration(left)} left",
            latest=escape(f"{record.cell.stack.name}: {result_of(record)}"),
        )  # fmt: skip
        if record.error:
            self.note(f"{record.cell.workload.name} on {record.cell.stack.name}: {record.error}")

    def note(self, text: str) -> None:
        """A line above the bar."""
        self.progress.console.print(text, markup=False)
