"""Shows the progress of a campaign: on a terminal a bar with the remaining time, else in lines, one per trial.

Only shows progress. The store contains the results.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from rich.text import Text

from fslab import Observer
from fslab.api.plans import LoopRates
from fslab.api.results import headline_of
from fslab.trial_record import Status, TrialRecord
from fslab.units import Unit, counted, format_duration, format_value, metric_text, ratio_text

if TYPE_CHECKING:
    from rich.console import Console

    from fslab.analysis.further_trials import ClaimsProgress, InterimResult
    from fslab.cell import Cell
    from fslab.store.campaign import Campaign


OPEN_SHOWN = 6
WAITING_TOLD_S = 30.0


def result_of(record: TrialRecord) -> str:
    """Return the headline figure of a trial, such as ``61.7k IOPS``, with its name if there are several or its unit
    does not tell what it is; the status of a failed or unsupported trial."""
    if record.status in {Status.FAILED, Status.UNSUPPORTED}:
        return record.status_text
    figures = headline_of(record)
    named = len(figures) > 1 or any(figure.unit is Unit.COUNT for figure in figures.values())
    shown = ", ".join(
        (f"{metric_text(name).removesuffix(' IOPS')} " if named else "")
        + format_value(figure.value, figure.unit)
        for name, figure in figures.items()
    )
    return shown if record.status is Status.OK else f"{shown} (invalid)"


def look_lines(look: InterimResult) -> Iterator[str]:
    """Yield ``after 8 trials each: 2 of 3 comparisons settled``, then each open one with its current interval."""
    if look.claims is not None:
        yield claims_line(look.claims)
    else:
        settled, every = len(look.questions) - len(look.open), counted(len(look.questions), "comparison")
        yield f"after {counted(look.blocks, 'trial')} each: {settled} of {every} settled"
    for question in look.open[:OPEN_SHOWN]:
        ratio, interval = question.ratio, question.interval
        told = "no ratio yet"
        if ratio is not None and interval is not None:
            told = _figure(question.unit, ratio, interval.low, interval.high)
        more = f", about {counted(question.further, 'more trial')}" if question.further else ""
        wanted = f", claimed: {question.bound}" if question.bound else ""
        said = " ".join(part for part in (question.a, told, question.b) if part)
        metric = "" if question.first else " " + metric_text(question.metric)
        yield f"    open: {question.workload}{metric}, {said}{wanted}{more}"
    if len(look.open) > OPEN_SHOWN:
        yield f"    and {len(look.open) - OPEN_SHOWN} more"


def replaced_words(invalid: int, more: int) -> str:
    """Return the message that is printed before invalid trials are replaced."""
    what = "1 trial is" if invalid == 1 else f"{invalid} trials are"
    return f"{what} invalid: running {counted(more, 'more trial')} (a comparison needs the other stacks too)"


def waiting(whom: str, waited_s: float, earlier_s: float = 0.0) -> str:
    """Return ``waiting 12 s for campaign … (process 4711), which …: trials on one machine take turns``.

    ``earlier_s``: the sum of the waits before this one: ``waiting 50 s in all for …``.
    """
    total_s = earlier_s + waited_s
    long = f" {format_duration(total_s)}{' in all' if earlier_s else ''}" if total_s >= 1 else ""
    return f"waiting{long} for {whom}: trials on one machine take turns"


def _figure(unit: Unit | None, *values: float) -> str:
    """Return ``1.90 × (1.70–2.10)``; with a unit ``4.50 µs (4.32 µs–4.69 µs)``."""
    if unit is not None:
        middle, low, high = (format_value(each, unit) for each in values)
        return f"{middle} ({low}–{high})"
    return " ".join(("{} ×", "({}–{})")).format(*ratio_text(*values))


def claims_line(claims: ClaimsProgress) -> str:
    """Return ``claims: 12 of 28 decided, 9 open, 3 given up (…), 2 at the limit, 2 not tested here; 14 min 20 s
    left``."""
    counts = (
        (len(claims.open), "open"),
        (len(claims.given_up), "given up (needs more than the time left)"),
        (len(claims.at_limit), "at the limit"),
        (claims.untestable, "not tested here"),
    )
    total = len(claims.decided) + sum(count for count, _ in counts)
    told = [f"claims: {len(claims.decided)} of {total} decided"]
    told += [f"{count} {what}" for count, what in counts if count]
    line = ", ".join(told)
    return line + (f"; {format_duration(claims.left_s)} left" if claims.left_s is not None else "")


class Lines(Observer):
    """Prints one line per trial, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.done = self.total = 0
        self.told_after_s = self.waited_s = 0.0
        self.rates = LoopRates()

    def campaign_started(self, campaign: Campaign, *, done: int, total: int, cells: int) -> None:
        self.done, self.total = done, total
        kept = f", {done} already done" if done else ""
        self.console.print(
            f"campaign {campaign.id}: {counted(total, 'trial')} of {counted(cells, 'cell')}{kept}"
        )

    def trial_ended(self, record: TrialRecord) -> None:
        self.done += 1
        self.rates.enter(record)
        cell = record.cell
        took = format_duration(record.duration_s)
        name = f"{cell.workload.name} on {cell.stack.name}"
        self.note(f"[{self.done}/{self.total}] {name}: {result_of(record)} ({took})")
        if record.error:
            self.note(f"    {record.error}")

    def looked(self, look: InterimResult, *, total: int) -> None:
        """Print the settled and the open comparisons."""
        self.total = total
        for line in (*look_lines(look), self.rates.words()):
            if line:
                self.note(line)

    def replaces(self, *, invalid: int, more: int, total: int) -> None:
        """Print how many trials are invalid and replaced."""
        self.total = total
        self.note(replaced_words(invalid, more))

    def waits(self, whom: str, waited_s: float) -> None:
        """Print a line at the first wait, and then one per 30 s of all waits: two campaigns wait at every trial."""
        if self.waited_s + waited_s >= self.told_after_s:
            self.told_after_s = self.waited_s + waited_s + WAITING_TOLD_S
            self.note(waiting(whom, waited_s, self.waited_s))

    def turn_begins(self, waited_s: float) -> None:
        """Add the wait that has ended to those that are reported next."""
        self.waited_s += waited_s

    def note(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)


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
            left_s = elapsed_s / self.measured * max(0, self.total - self.done)
            left = f" · about {format_duration(left_s)} left"
        bar = _filled_bar(self.done / self.total, 20)
        return f"{bar} {self.done}/{self.total} · {format_duration(elapsed_s)}{left} · {self.current}"


def _filled_bar(share: float, width: int) -> str:
    whole = min(share, 1.0) * width
    full = int(whole)
    part = _TICKS[int((whole - full) * len(_TICKS))] if full < width else ""
    return ("█" * full + part).ljust(width)
