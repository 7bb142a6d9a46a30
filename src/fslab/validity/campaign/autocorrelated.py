"""Autocorrelated: each trial of a cell resembles the previous one. Pure."""

import statistics
from collections.abc import Iterator

from fslab.record import Severity
from fslab.stats.series import autocorrelation
from fslab.validity.campaign import CampaignFinding, CampaignRule, Series

_LEVEL = 0.01
_SPREAD = 0.02  # autocorrelation within a range of 2 % affects no comparison


class Autocorrelated(CampaignRule):
    """Dependent trials contain less information than the same number of independent trials.

    Intervals of ratios are widened for this, reliably from 20 blocks on. The interval of a cell's median is not.
    """

    summary = "a cell's trials resemble the ones before them"
    severity = Severity.WARNING
    when = (
        f"each trial of a cell resembles the one before (Bartels at {_LEVEL:.0%}; from 8 trials on), and "
        f"they vary by {_SPREAD:.0%} or more"
    )
    hint = "make the file system fresh for each trial, and let the device rest between trials"

    def judge(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        """Apply Bartels' rank test at 1 %, which needs 8 trials."""
        for series in campaign:
            values = [series.values[block] for block in sorted(series.values)]
            found = autocorrelation(values)
            if found.p_value is None or found.lag1 is None or found.p_value > _LEVEL:
                continue
            middle = statistics.median(values)
            if middle <= 0 or (max(values) - min(values)) / middle < _SPREAD:
                continue
            warning = self.warning(
                f"each trial resembles the one before (correlation {found.lag1:.2f}): they contain less information "
                "than independent trials would",
                lag1=found.lag1, p_value=found.p_value, trials=found.n,
            )  # fmt: skip
            yield CampaignFinding(warning=warning, series=series)
