"""Multimodal: the trials of a cell fall into two groups, as if from two machines. Pure."""

from collections.abc import Iterator

from fslab.record import Severity
from fslab.stats.multimodality import dip
from fslab.validity.campaign import CampaignFinding, CampaignRule, Series

_LEVEL = 0.01
_APART = 1.05  # ratio of the two levels; smaller ratios do not matter


class Multimodal(CampaignRule):
    """If trials fall into two groups, chance decides whether the median is one of the two levels or neither.

    Known causes: an allocator that chooses one of two layouts, garbage collection in the device, memory on another NUMA
    node, a CPU frequency that stays low.
    """

    summary = "a cell's trials fall into two groups"
    severity = Severity.WARNING
    when = (
        f"the trials of a cell fall into two groups (Hartigans' dip at {_LEVEL:.0%}; from 8 trials on) "
        f"whose levels are {_APART - 1:.0%} apart or more"
    )
    hint = "compare the trials of the two groups and their probes (fslab export)"

    def judge(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        """Apply Hartigan's dip test at 1 %, which needs 8 trials."""
        for series in campaign:
            values = [series.values[block] for block in sorted(series.values)]
            found = dip(values)
            if found.p_value is None or found.p_value > _LEVEL or found.levels is None:
                continue
            low, high = found.levels
            if low <= 0 or high / low < _APART:
                continue
            warning = self.warning(
                f"the trials fall into two groups, {high / low:.2f} × apart: their median depends on chance",
                levels=[low, high], p_value=found.p_value, trials=found.n,
            )  # fmt: skip
            yield CampaignFinding(warning=warning, series=series)
