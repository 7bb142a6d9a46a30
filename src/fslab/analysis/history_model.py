"""What the history of a study says, as plain values: shown in the terminal and by ``--json``. Computes nothing."""

from datetime import datetime

from fslab.analysis.campaign_comparison_model import FactChange
from fslab.analysis.comparison_model import Span
from fslab.cell import Frozen
from fslab.units import Direction, Unit


class HistoryPoint(Frozen):
    """One figure of one campaign: the median of its ``n`` usable trials, and that median's interval."""

    campaign: str
    created: datetime
    median: float
    interval: Span | None
    n: int


class LevelChange(Frozen):
    """A change of level: ``since`` is the first campaign after it, ``before`` the last one before.

    ``ratio`` is the later level ÷ the earlier one, with an interval of the campaigns' medians (None with fewer
    than four campaigns on a side); ``p_value`` that of there being a change. ``facts`` changed just there.
    """

    since: str
    before: str
    ratio: float | None
    interval: Span | None
    p_value: float
    facts: tuple[FactChange, ...]
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
    """Facts that changed between two neighbouring campaigns."""

    before: str
    after: str
    facts: tuple[FactChange, ...]


class History(Frozen):
    """A study over time on one machine. ``elsewhere``: campaigns of it that other machines ran, not shown;
    ``former``: cells of earlier campaigns that the latest one does not have, not shown."""

    study: str
    machine: str | None
    campaigns: tuple[str, ...]
    series: tuple[HistorySeries, ...]
    steps: tuple[HistoryStep, ...]
    elsewhere: int
    former: int
    enough: int
