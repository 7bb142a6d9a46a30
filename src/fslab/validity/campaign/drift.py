"""Drift: the whole machine became faster or slower during the campaign. Pure."""

import statistics
from collections.abc import Iterator

from fslab.record import Severity
from fslab.stats.changes import change_points
from fslab.stats.series import trend
from fslab.units import Direction
from fslab.validity.campaign import CampaignFinding, CampaignRule, Series

_LEVEL = 0.02  # five blocks that all change in one direction have p = 2/5! = 0.017
_MATTERS = 0.05


class Drift(CampaignRule):
    """Drift affects all cells alike, because trials are interleaved. Comparisons by block remove it.

    So the warning is only a note. But medians contain the drift, and so do comparisons with other campaigns. The level
    of a block is the median, over all cells, of the cell's value divided by the cell's median. So a change in one cell
    is not drift.
    """

    summary = "the machine became faster or slower during the campaign"
    severity = Severity.NOTE
    when = (
        f"the median over all cells changed with the blocks, by {_MATTERS:.0%} or more (Mann–Kendall at "
        f"{_LEVEL:.0%}; from 5 blocks on). Comparisons by block do not contain it"
    )
    hint = "compare within this campaign only; look for heat, garbage collection and other load"

    def judge(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        """Apply the Mann–Kendall test at 2 %, from five blocks on; report changes of at least 5 % over the campaign."""
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
    """Return by block the median, over all cells, of the speed relative to the cell's median; above 1 is faster.

    Only blocks that more than half of the cells have are used. Settled cells get no more trials, and the few noisy
    cells that remain do not show the speed of the machine.
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
