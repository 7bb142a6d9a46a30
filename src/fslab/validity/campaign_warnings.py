"""The rules for a campaign, which check the values of all trials together. One function per reason for a warning.

The rules are evaluated when a report is made. Their results are never stored, because each new trial may change them.
They give no warning if there are too few trials to detect their problem.
"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log

from fslab.registry import Registry, decorator_of
from fslab.stats.multimodality import dip
from fslab.stats.relative_drift import BLOCKS_LEAST, relative_drifts
from fslab.stats.time_series import autocorrelation, change_points, trend
from fslab.trial_record import Severity, ValidityWarning
from fslab.units import Direction
from fslab.validity import Issue, Rule


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One metric of one workload on one stack: the values of the usable trials by block, as measured.

    Unknown values are absent. ``headline``: the metric is the most important one of the workload. ``set_time``: the
    workload runs for a set time.
    """

    workload: str
    stack: str
    metric: str
    better: Direction
    headline: bool
    values: Mapping[int, float]
    set_time: bool = False

    def in_order(self) -> list[float]:
        return [self.values[block] for block in sorted(self.values)]


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignFinding:
    """A warning about a ``series``, or about the whole campaign if ``series`` is None."""

    warning: ValidityWarning
    series: Series | None = None


class CampaignRule(Rule):
    """A rule for all series of a campaign, which ``campaign_rule`` makes of a function.

    The function yields issues, each with its series, or None if it is about the whole campaign.
    """

    def findings(self, campaign: tuple[Series, ...]) -> Iterator[CampaignFinding]:
        for series, issue in self._find(campaign):
            yield CampaignFinding(warning=self.warning(issue), series=series)


campaign_rule = decorator_of(CampaignRule)

_LEVEL = 0.01
_LEVEL_OF_DRIFT = 0.02  # five blocks that all change in one direction have p = 2/5! = 0.017
_SPREAD = 0.02  # autocorrelation within a range of 2 % affects no comparison
_DRIFT = 0.05  # a smaller drift does not matter
_LEVEL_OF_STACKS = 0.05  # of all cells together
_MORE = 1.5  # times the operations: then the longest one is of the faster stack in three of five trials, not in half
_OPERATIONS = "iops"
_APART = 1.05  # ratio of the two levels; smaller ratios do not matter


@campaign_rule(
    "a cell's trials resemble the ones before them",
    when=f"each trial of a cell resembles the one before (Bartels at {_LEVEL:.0%}; from 8 trials on), and "
    f"they vary by {_SPREAD:.0%} or more",
    hint="make the file system fresh for each trial, and let the device rest between trials",
)
def autocorrelated(campaign: tuple[Series, ...]) -> Iterator[tuple[Series, Issue]]:
    """Dependent trials contain less information than the same number of independent trials.

    Intervals of ratios are widened for this, reliably from 20 blocks on. The interval of a cell's median is not.
    """
    for series in campaign:
        values = series.in_order()
        found = autocorrelation(values)
        if found is None or found.p_value > _LEVEL:
            continue
        middle = statistics.median(values)
        if middle <= 0 or (max(values) - min(values)) / middle < _SPREAD:
            continue
        yield series, Issue(
            f"each trial resembles the one before (correlation {found.lag1:.2f}): they contain less information "
            "than independent trials would",
            lag1=found.lag1, p_value=found.p_value, trials=len(values),
        )  # fmt: skip


@campaign_rule(
    "the machine became faster or slower during the campaign",
    Severity.NOTE,
    when=f"the median over all cells changed with the blocks, by {_DRIFT:.0%} or more (Mann–Kendall at "
    f"{_LEVEL_OF_DRIFT:.0%}; from 5 blocks on). Comparisons by block do not contain it",
    hint="compare within this campaign only; look for heat, garbage collection and other load",
)
def drift(campaign: tuple[Series, ...]) -> Iterator[tuple[None, Issue]]:
    """Drift affects all cells alike, because trials are interleaved. Comparisons by block remove it.

    So the warning is only a note. But medians contain the drift, and so do comparisons with other campaigns. The level
    of a block is the median, over all cells, of the cell's value divided by the cell's median. So a change in one cell
    is not drift.
    """
    levels = _levels([series for series in campaign if series.headline])
    blocks = sorted(levels)
    line = trend([levels[block] for block in blocks], [float(block) for block in blocks])
    if line is None or line.p_value > _LEVEL_OF_DRIFT or line.change is None or abs(line.change) < _DRIFT:
        return
    changes = change_points([levels[block] for block in blocks])
    since = f", most of all at block {blocks[changes[0].index]}" if len(changes) == 1 else ""
    word = "faster" if line.change > 0 else "slower"
    yield None, Issue(
        f"all cells became {word} during the campaign, by {100 * abs(line.change):.0f} %{since}",
        change=line.change, p_value=line.p_value, blocks=len(blocks),
    )  # fmt: skip


@campaign_rule(
    "a stack became faster or slower during the campaign, relative to the others",
    when=f"a stack's first figure of a workload went one way with the blocks, relative to the other stacks, by "
    f"{_DRIFT:.0%} or more (Mann–Kendall at {_LEVEL_OF_STACKS:.0%} for all of a campaign together; from "
    f"{BLOCKS_LEAST} blocks on, with many stacks and workloads from 6 to 8)",
    hint="its ratios depend on how long the campaign is: look for what fills, ages or heats up, and measure longer",
)
def stack_drift(campaign: tuple[Series, ...]) -> Iterator[tuple[Series, Issue]]:
    """Comparisons by block remove what all stacks have in common, but not this: the mean of a ratio that changes says
    nothing of its next block, and a campaign that ends as soon as stacks differ ends at another ratio.
    """
    groups: dict[str, list[Series]] = {}
    for each in campaign:
        if (
            each.headline
            and each.better is not Direction.NEITHER
            and min(each.values.values(), default=0) > 0
        ):
            groups.setdefault(each.workload, []).append(each)
    of_groups = [*groups.values()]
    for one in relative_drifts(
        [[*map(_log_speeds, own)] for own in of_groups], alpha=_LEVEL_OF_STACKS, least=_DRIFT
    ):
        own = of_groups[one.group]
        word = "faster" if one.change > 0 else "slower"
        others = "the other stacks" if len(own) > 2 else "the other stack"
        yield own[one.member], Issue(
            f"it became {word} by {100 * abs(one.change):.0f} % within {one.blocks} blocks, relative to {others}",
            change=one.change, p_value=one.p_value, blocks=one.blocks,
        )  # fmt: skip


def _log_speeds(series: Series) -> dict[int, float]:
    sign = -1 if series.better is Direction.LOWER else 1
    return {block: sign * log(value) for block, value in series.values.items()}


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


@campaign_rule(
    "a cell's trials fall into two groups",
    when=f"the trials of a cell fall into two groups (Hartigans' dip at {_LEVEL:.0%}; from 8 trials on) "
    f"whose levels are {_APART - 1:.0%} apart or more",
    hint="compare the trials of the two groups and their probes (fslab export)",
)
def multimodal(campaign: tuple[Series, ...]) -> Iterator[tuple[Series, Issue]]:
    """If trials fall into two groups, chance decides whether the median is one of the two levels or neither.

    Known causes: an allocator that chooses one of two layouts, garbage collection in the device, memory on another NUMA
    node, a CPU frequency that stays low.
    """
    for series in campaign:
        found = dip(series.in_order())
        if found is None or found.p_value > _LEVEL:
            continue
        low, high = found.levels
        if low <= 0 or high / low < _APART:
            continue
        yield series, Issue(
            f"the trials fall into two groups, {high / low:.2f} × apart: their median depends on chance",
            levels=[low, high], p_value=found.p_value, trials=len(series.values),
        )  # fmt: skip


@campaign_rule(
    "the longest of more operations is longer",
    when=f"a longest latency (`…_max`) of a workload that runs for a set time, in which one stack did {_MORE:g} times "
    "as many operations as another, or more",
    hint="compare percentiles, such as p99, or set the amount of work instead of the time",
)
def unequal_numbers(campaign: tuple[Series, ...]) -> Iterator[tuple[Series, Issue]]:
    """The longest latency of a trial grows with the number of its operations, also if each is as fast.

    A percentile of more operations is only more precise.
    """
    done: dict[str, dict[str, dict[str, float]]] = {}
    for series in campaign:
        if series.set_time and series.values and series.metric.endswith(_OPERATIONS):
            own = done.setdefault(series.workload, {}).setdefault(series.metric, {})
            own[series.stack] = statistics.median(series.values.values())
    for series in campaign:
        if not series.metric.endswith("_max") or series.better is not Direction.LOWER:
            continue
        rates = done.get(series.workload, {})
        of_job = [
            each for name, each in rates.items() if series.metric.startswith(name.removesuffix(_OPERATIONS))
        ]
        for rate in of_job or rates.values():  # sysbench has one latency for reads and writes
            least, most = min(rate.values()), max(rate.values())
            if most >= _MORE * least:
                yield series, Issue(
                    f"in the same time, the stacks did {least:.3g} to {most:.3g} operations per second: the longest of "
                    "more operations is longer, even if each is as fast",
                    least=least, most=most,
                )  # fmt: skip
                break


REGISTRY = Registry("rule", __name__, CampaignRule, by_subject=True, group="fslab.campaign_rules")


def campaign_warnings(campaign: tuple[Series, ...]) -> tuple[CampaignFinding, ...]:
    return tuple(finding for _, rule in REGISTRY for finding in rule.findings(campaign))
