"""The interface by which a running campaign reports its progress. Does not decide how it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from fslab.analysis.further_trials import InterimResult
    from fslab.cell import Cell
    from fslab.store.campaign import Campaign
    from fslab.trial_record import TrialRecord


class Observer:
    """The base class: its methods do nothing. A context manager, for views that have to be ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def campaign_started(self, campaign: Campaign, *, done: int, total: int, cells: int) -> None:
        """Called before the first trial of this process; ``done``: the campaign's earlier trials; ``cells``: how many
        of its cells have trials."""

    def trial_started(self, cell: Cell, block: int) -> None:
        """Called before each trial."""

    def trial_ended(self, record: TrialRecord) -> None:
        """Called after each trial, when it is stored."""

    def looked(self, look: InterimResult, *, total: int) -> None:
        """Called after each interim analysis; ``total`` trials are planned now."""

    def replaces(self, *, invalid: int, more: int, total: int) -> None:
        """Called before a block of ``more`` trials that replaces invalid ones; ``total`` trials are planned now."""

    def waits(self, whom: str, waited_s: float) -> None:
        """Called repeatedly, from another thread, while ``whom`` holds the machine lock."""

    def turn_begins(self, waited_s: float) -> None:
        """Called when the machine lock is ours. The wait counts toward no budget and no trial."""

    def note(self, text: str) -> None:
        """Called with a message for the user."""
