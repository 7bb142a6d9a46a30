"""Drift: the whole machine became faster or slower in the course of the campaign. Judges only."""

import statistics
from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity
from fslab.stats.changes import change_points
from fslab.stats.series import trend
from fslab.units import Direction
from fslab.validity.campaign import CampaignFinding, CampaignRule, Series

_LEVEL = 0.02  # five blocks that go one way: 2/5! = 0.017
_MATTERS = 0.05


class Drift(CampaignRule):
    """Blocks are interleaved, so that drift meets all cells alike and comparisons by block do not notice: a note.
    But medians hold it, and a comparison with another campaign would find it. A block's level is the median over
    all cells of its values, each as a share of its cell's median, so that one cell's own ways are not drift."""

    summary = "the machine became faster or slower during the campaign"
    severity = Severity.NOTE
    hint: ClassVar[str] = (
        "compare within this campaign only; look for heat, garbage collection and other load"
    )

    def judge(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        """Mann–Kendall at 2 %, from five blocks on, of 5 % and more over the campaign."""
        levels = _levels([series for series in campaign if series.headline])
        blocks = sorted(levels)
        line = trend([levels[block] for block in blocks], [float(block) for block in blocks])
        if line.p_value is None or line.change is None:
            return
        if line.p_value > _LEVEL or abs(line.change) < _MATTERS:
            return
        changes = change_points([levels[block] for block in blocks])
        since = f", most of all at block {blocks[changes[0].index]}" if len(changes) == 1 else ""
        word = "faster" if line.change > 0 else "slower"
        yield CampaignFinding(
            warning=self.warning(
                f"all cells became {word} during the campaign, by {100 * abs(line.change):.0f} %{since}",
                change=line.change,
                p_value=line.p_value,
                blocks=len(blocks),
            )
        )


def _levels(series: list[Series]) -> dict[int, float]:
    """By block, the median over all cells of speed as a share of the cell's own median; above 1 is faster.

    Only blocks that more than half of the cells have: where cells that are settled get no more trials, what the last
    few noisy ones do is not the machine.
    """
    shares: dict[int, list[float]] = {}
    for each in series:
        middle = statistics.median(each.values.values()) if each.values else 0.0
        if middle <= 0 or each.better is Direction.NEITHER or min(each.values.values()) <= 0:
            continue
        for block, value in each.values.items():
            share = value / middle
            shares.setdefault(block, []).append(1 / share if each.better is Direction.LOWER else share)
    enough = max(map(len, shares.values()), default=0) / 2
    return {block: statistics.median(found) for block, found in shares.items() if len(found) > enough}
