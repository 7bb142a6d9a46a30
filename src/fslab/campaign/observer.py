"""What a campaign tells while it runs: shows it to a person, or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fslab.analysis.interim import InterimResult
    from fslab.cell import Cell
    from fslab.record import TrialRecord
    from fslab.store.campaign import Campaign


class Observer:
    """A base that shows nothing."""

    def campaign_started(
        self, campaign: Campaign, *, done: int, total: int, stored: Sequence[TrialRecord] = ()
    ) -> None:
        """Before the first trial of this process."""

    def trial_started(self, cell: Cell, block: int) -> None:
        """Before each trial."""

    def trial_ended(self, record: TrialRecord) -> None:
        """After each trial, when it is stored."""

    def looked(self, look: InterimResult, *, total: int) -> None:
        """After each interim look; ``total`` trials are planned by now."""

    def replaces(self, *, invalid: int, more: int, total: int) -> None:
        """Before a block of ``more`` trials that replaces invalid ones; ``total`` trials are planned by now."""

    def waits(self, whom: str, waited_s: float) -> None:
        """Again and again, from another thread, while ``whom`` has the turn."""

    def turn_begins(self, waited_s: float) -> None:
        """When the turn is ours; the wait counts toward no budget and no trial."""

    def note(self, text: str) -> None:
        """Something that a person should know."""
