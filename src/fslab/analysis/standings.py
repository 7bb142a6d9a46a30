"""Finds which stacks are best in a metric, how certain this is, and which are worse. Pure.

Uses the answers of the metric's row only.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from fslab.answers.model import COUNTED, NEEDS_MORE, Answer, Counted, Verdict
from fslab.cell import Frozen
from fslab.stopping_settings import MARGIN
from fslab.units import Direction, Unit


class StandingCertainty(StrEnum):
    """How certain the best of a metric is.

    ``alike``: all that may be the best differ by less than the margin. ``open``: more trials are needed. ``counted``:
    events were counted, if any, and do not show a difference of those that may be the best.
    ``not_comparable``: values have no ratio. ``single``: nothing to compare with.
    """

    BEST = "best"
    ALIKE = "alike"
    OPEN = "open"
    COUNTED = "counted"
    NOT_COMPARABLE = "not_comparable"
    SINGLE = "not_compared"


class Standing(Frozen):
    """The best stacks in one metric of one workload.

    ``labels``: the best stack, or all that may be the best, the leader first. ``value``: the leader's median.
    ``next``: comparison with the nearest stack that the leader is shown to be better than, ``next_stack``. ``worse``:
    all that are shown not to be the best. ``costs``: by what factor (above 1) each of these is worse than the leader,
    as far as that is shown, and there is a ratio.
    ``margin``: differences below this share do not matter. ``n``: complete blocks; ``needed``: complete blocks needed
    for an interval; ``further``, ``further_s``: about how many more blocks decide all open comparisons with the leader,
    and the seconds that they take; None if unknown. ``not_compared``: stacks on other kinds of machines, which are not
    compared with the leader, and of which nothing else here tells. ``counted``: of counts of events, what was counted
    on the leader, and on each stack that is not shown to differ from it.
    """

    workload: str
    metric: str
    unit: Unit
    better: Direction
    certainty: StandingCertainty
    labels: tuple[str, ...]
    value: float | None
    margin: float
    next: Answer | None = None
    next_stack: str | None = None
    worse: tuple[str, ...] = ()
    costs: tuple[float | None, ...] = ()
    n: int = 0
    needed: int = 0
    further: int | None = None
    further_s: float | None = None
    not_compared: tuple[str, ...] = ()
    counted: Mapping[str, Counted] = {}


class ComparedRow(Frozen):
    """One metric of one workload. ``leader``: the stack with the best median; ``answers``: about the leader and each
    other stack on the same kind of machine, turned so that a ratio above 1 means that the leader is better. ``behind``:
    the stacks that are shown not to be the best (``RowAnswers.behind``). ``margin``: differences below this share do
    not matter."""

    workload: str
    metric: str
    unit: Unit
    better: Direction
    margin: float = MARGIN
    leader: str | None
    answers: tuple[Answer, ...]
    behind: tuple[str, ...] = ()


def standing(row: ComparedRow, medians: Mapping[str, float | None], n: int) -> Standing:
    """Return the standing of a row.

    ``medians``: of the stacks that have values, by label in the order of the plan. ``n``: number of values of the
    first.
    """
    worse = {each.other(row.leader): each for each in row.answers if each.other(row.leader) in row.behind}
    rivals = [each for each in row.answers if each.other(row.leader) not in worse]
    compared = {row.leader, *(each.other(row.leader) for each in row.answers)}
    not_compared = tuple(label for label in medians if row.leader is not None and label not in compared)
    best = [label for label in medians if label not in {*worse, *not_compared}]
    best.sort(key=lambda label: label != row.leader)
    next_stack, nearest = min(
        ((label, each) for label, each in worse.items() if each.differs),
        key=lambda item: item[1].ratio or item[1].more or 0.0, default=(None, None),
    )  # fmt: skip
    undecided = [each for each in rivals if each.verdict in NEEDS_MORE or each.differs]
    blocks = _largest([each.further for each in undecided])
    return Standing(
        workload=row.workload, metric=row.metric, unit=row.unit, better=row.better,
        certainty=_certainty(row, rivals), labels=tuple(best), margin=row.margin,
        value=medians.get(row.leader or ""),
        next=nearest, next_stack=next_stack, worse=tuple(worse),
        costs=tuple(each.ratio if each.differs else None for each in worse.values()),
        n=min((min(each.n) for each in row.answers), default=n),
        needed=max((each.needed for each in row.answers), default=0),
        further=None if blocks is None else round(blocks),
        further_s=_largest([each.further_s for each in undecided]), not_compared=not_compared,
        counted=counted_sides(row.leader, rivals),
    )  # fmt: skip


def counted_sides(leader: str | None, answers: Sequence[Answer]) -> dict[str, Counted]:
    """Return what was counted of the leader and of each stack that it is compared with; empty if these are no
    counts."""
    sides = {leader: answers[0].counted_of(leader)} if leader and answers else {}
    sides |= {each.other(leader): each.counted_of(each.other(leader)) for each in answers}
    return {label: counted for label, counted in sides.items() if counted is not None}


def _certainty(row: ComparedRow, rivals: Sequence[Answer]) -> StandingCertainty:
    if not row.answers or row.better is Direction.NEITHER:
        return StandingCertainty.SINGLE
    if not rivals:
        return StandingCertainty.BEST
    verdicts = {each.verdict for each in rivals}
    if verdicts == {Verdict.ALIKE}:
        return StandingCertainty.ALIKE
    if verdicts <= {Verdict.ALIKE, *COUNTED}:
        return StandingCertainty.COUNTED
    if verdicts <= {Verdict.ALIKE, Verdict.NO_RATIO}:
        return StandingCertainty.NOT_COMPARABLE
    return StandingCertainty.OPEN  # a rival that differs beats the leader, which more trials make clear


def _largest(values: Sequence[float | None]) -> float | None:
    """Return the largest value; None if there is none, or if one of them is unknown."""
    known = [each for each in values if each is not None]
    return max(known) if known and len(known) == len(values) else None
