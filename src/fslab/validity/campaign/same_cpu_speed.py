"""Same CPU speed: part of the noise follows the speed of the CPU, and comparisons use corrected figures. Pure."""

import statistics
from collections.abc import Iterator, Mapping
from math import log

from fslab.record import Severity
from fslab.units import listed
from fslab.validity.campaign import CampaignFinding, CampaignRule, Series

_BLOCKS_LEAST = 3


class SameCpuSpeed(CampaignRule):
    """Tables show figures as measured; ratios and verdicts are those at the same CPU speed (docs/methods.md)."""

    summary = "figures are compared at the same CPU speed, which explains part of their noise"
    severity = Severity.NOTE

    def judge(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        """Compare the scatter of the values before and after the correction; both are needed in 3 blocks."""
        before, after = list[float](), list[float]()
        workloads = dict[str, None]()
        for series in campaign:
            few = len(series.values) < _BLOCKS_LEAST
            if series.corrected is None or few or min(series.values.values()) <= 0:
                continue
            before.append(_scatter(series.values))
            after.append(_scatter(series.corrected))
            workloads[series.workload] = None
        if before:
            measured, corrected = statistics.median(before), statistics.median(after)
            warning = self.warning(
                f"{listed(list(workloads))}: trials of a cell scatter by {100 * measured:.1f} % as measured and by "
                f"{100 * corrected:.1f} % at the same CPU speed (medians over {len(before)} figures)",
                measured=measured, corrected=corrected, figures=len(before),
            )  # fmt: skip
            yield CampaignFinding(warning=warning)


def _scatter(values: Mapping[int, float]) -> float:
    """Return the standard deviation of the logarithms."""
    return statistics.stdev(log(value) for value in values.values())
