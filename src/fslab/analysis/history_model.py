"""The history of a study, as plain values for the terminal and ``--json``. Computes nothing."""

from datetime import datetime

from fslab.answers.model import Interval
from fslab.cell import Frozen
from fslab.machine.differences import Difference
from fslab.units import Direction, Unit


class HistoryPoint(Frozen):
    """One figure of one campaign: the median of its ``n`` usable trials, and the interval of this median."""

    campaign: str
    created: datetime
    median: float
    interval: Interval | None
    n: int


class LevelChange(Frozen):
    """A change of level: ``since`` is the first campaign after it, ``before`` the last campaign before it.

    ``ratio``: later level ÷ earlier level, with an interval computed from the campaigns' medians. ``p_value``: for the
    null hypothesis "no change". ``facts``: facts that changed between the two campaigns.
    """

    since: str
    before: str
    ratio: float | None
    interval: Interval | None
    p_value: float
    facts: tuple[Difference, ...]
    words: str


class HistorySeries(Frozen):
    """One metric of one cell over the campaigns that have it."""

    stack: str
    workload: str
    cache: str
    metric: str
    unit: Unit
    better: Direction
    points: tuple[HistoryPoint, ...]
    changes: tuple[LevelChange, ...]


class HistoryStep(Frozen):
    """Facts that changed between two consecutive campaigns."""

    before: str
    after: str
    facts: tuple[Difference, ...]


class History(Frozen):
    """A study over time on one machine.

    ``elsewhere``: number of the study's campaigns that ran on other machines. ``former``: number of cells of earlier
    campaigns that the latest campaign does not have. Both are not shown. ``enough``: number of campaigns below which no
    change can be significant.
    """

    study: str
    machine: str | None
    campaigns: tuple[str, ...]
    series: tuple[HistorySeries, ...]
    steps: tuple[HistoryStep, ...]
    elsewhere: int
    former: int
    enough: int
