"""The contract of a campaign rule: judges the values of all trials together. One file per reason for doubt.

Evaluated when a report is made and never stored: with every further trial the answer may change.
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
    """One metric of one workload on one stack: the known values of the usable trials by block, as measured.

    ``headline``: the metric that tells most of the workload.
    """

    workload: str
    stack: str
    metric: str
    better: Direction
    headline: bool
    values: Mapping[int, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignFinding:
    """A warning, and what it is about; without a ``series`` it is the whole campaign."""

    warning: ValidityWarning
    series: Series | None = None


class CampaignRule(Rule):
    """Sees every series; what so few trials do not show it leaves out."""

    @abstractmethod
    def judge(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        """What the values give reason for. Pure."""


REGISTRY: Registry[CampaignRule] = Registry("rule", __name__, CampaignRule, group="fslab.campaign_rules")


def judge(campaign: tuple[Series, ...]) -> tuple[CampaignFinding, ...]:
    """What all rules say of a campaign."""
    return tuple(found for _, rule in REGISTRY for found in rule.judge(campaign))
