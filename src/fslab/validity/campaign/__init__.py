"""The interface of campaign rules, which check the values of all trials together. One file per reason for a warning.

The rules are evaluated when a report is made. Their results are never stored, because each new trial may change them.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fslab.record import ValidityWarning
from fslab.registry import Registry
from fslab.units import Direction
from fslab.validity import Rule


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One metric of one workload on one stack: the values of the usable trials by block, as measured.

    Unknown values are absent. ``headline``: the metric is the most important one of the workload.
    """

    workload: str
    stack: str
    metric: str
    better: Direction
    headline: bool
    values: Mapping[int, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignFinding:
    """A warning about a ``series``, or about the whole campaign if ``series`` is None."""

    warning: ValidityWarning
    series: Series | None = None


class CampaignRule(Rule):
    """A rule for all series of a campaign. It gives no warning if there are too few trials to detect its problem."""

    @abstractmethod
    def judge(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        """Yield the warnings for these values. Pure."""


REGISTRY: Registry[CampaignRule] = Registry("rule", __name__, CampaignRule, group="fslab.campaign_rules")


def judge(campaign: tuple[Series, ...]) -> tuple[CampaignFinding, ...]:
    """Return the warnings of all rules for a campaign."""
    return tuple(found for _, rule in REGISTRY for found in rule.judge(campaign))
