"""The questions of one row of a table, each stack against each other one, and what their answers say of the row. Pure.

``answers`` answers them; this module decides which stacks are compared. Stacks on different kinds of machines are never
compared.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations

from fslab.analysis.noise_pools import CampaignNoise
from fslab.analysis.workload_groups import Group, Sample
from fslab.answers.model import Answer, Verdict
from fslab.answers.ratio import Goal, Looks, NoisePrior, Question, answer, read_as_counts
from fslab.cell import Frozen, Geometry, StackSpec
from fslab.stopping_settings import MARGIN, StoppingRule
from fslab.trial_record import Metric, TrialRecord
from fslab.units import Direction, Unit, listed

EFFECT = "options_in_effect"  # observed lines of a trial: equal exactly if mount options have the same effect
# Kind of the warning that names options which the kernel dropped or changed.
CHANGED = "options_not_in_effect"
_STRIPES = ("mkfs_told_of_stripes", "stripes_in_use")


@dataclass(frozen=True, kw_only=True, slots=True)
class SameStack:
    """``of``: the first stack (id) that has the same effect. ``changed``: options of both that are not in effect."""

    of: str
    changed: tuple[str, ...]


def same_stacks(stacks: Mapping[str, StackSpec], trials: Sequence[TrialRecord]) -> dict[str, SameStack]:
    """Return each stack (id) that is the same as an earlier one.

    A stack is known by what all of its trials found; without a trial that knows the options in effect, it is not.
    """
    effects: dict[str, set[str]] = {}
    changed: dict[str, dict[str, None]] = {}
    for trial in trials:
        options = trial.provenance.observed.get(EFFECT)
        if options is not None:
            stripes = [trial.provenance.device.get(name) for name in _STRIPES]
            effects.setdefault(trial.cell.stack_id, set()).add(json.dumps([options, stripes]))
        for warning in trial.validity:
            if warning.kind == CHANGED:
                named = dict.fromkeys(warning.data.get("options", ()))
                changed.setdefault(trial.cell.stack_id, {}).update(named)
    first: dict[tuple[str, str], str] = {}
    found = {}
    for key, spec in stacks.items():
        effect, *others = effects.get(key) or [""]
        of = first.setdefault((_made(spec), effect), key) if effect and not others else key
        if of != key:
            names = {**changed.get(of, {}), **changed.get(key, {})}
            found[key] = SameStack(of=of, changed=tuple(names))
    return found


def why_same(changed: Sequence[str]) -> str:
    """Return why two stacks are the same. ``changed``: see :class:`SameStack`."""
    options = listed([f"'{option}'" for option in changed])
    return f"the kernel dropped or changed {options}" if options else "their options have the same effect"


def different(
    samples: Sequence[Sample], same: Mapping[str, SameStack]
) -> tuple[list[Sample], dict[str, str]]:
    """Return the samples to compare, and for each other one the stack (id) that it is the same as.

    Two samples of the same stack differ by noise only.
    """
    have = {sample.stack for sample in samples}
    others = {stack: each.of for stack, each in same.items() if {stack, each.of} <= have}
    return [sample for sample in samples if sample.stack not in others], others


def _made(spec: StackSpec) -> str:
    """Return all of a stack except what ``EFFECT`` and the stripes in use tell."""
    update = {"mount_options": "", "geometry": Geometry.DEFAULT}
    return spec.content.model_copy(update=update).model_dump_json()


ALL_MATTER = 5
PriorOf = Callable[[str, str], NoisePrior | None]
_UNTESTED = frozenset({Verdict.TOO_FEW, Verdict.NO_RATIO, Verdict.MISSING})


class Mark(StrEnum):
    """The position of a stack in its row.

    ``best``: its ratio interval against every other stack excludes 1, on the better side. This is an intersection-union
    test (Berger, Technometrics 24 (1982) 295): "better than all" has the error rate of one comparison, without a
    correction, and so has "worse than the best one". ``none``: ``RowAnswers.behind``, or unknown (too few trials, no
    preferred direction, nothing to compare with). ``maybe_best``: the others. If all others are behind, some of them
    only behind each other, the last one is ``best`` too.
    """

    BEST = "best"
    MAYBE_BEST = "maybe_best"
    NONE = "none"


class Rank(Frozen):
    """One place of a ranking: stacks (labels) that are not shown to differ.

    ``ahead``: pairs of stacks that share the place although the first is significantly better, because each of them is
    not shown to differ from a third stack.
    """

    rank: int
    stacks: tuple[str, ...]
    ahead: tuple[tuple[str, str], ...] = ()


def rank(
    values: Mapping[str, float], winners: Mapping[tuple[str, str], str | None], *, better: Direction
) -> tuple[Rank, ...]:
    """Return places as in sports: items that share a place count, so that the next place is lower (1, 2=, 2=, 4).

    ``winners`` maps a pair, in either order, to the item shown to be better, or None. A missing pair counts as
    undecided. A new place begins only where every item above is shown to be better than every item below. So
    items that are linked by a chain of undecided pairs share a place, and the decided pairs among them are in
    ``ahead``. Order within a place: wins minus losses, then the better value.
    """

    def winner(one: str, other: str) -> str | None:
        return winners.get((one, other), winners.get((other, one)))

    def standing(label: str) -> tuple[int, float]:
        decided = [found for other in values if (found := winner(label, other)) is not None]
        value = values[label]
        return 2 * decided.count(label) - len(decided), -value if better is Direction.LOWER else value

    order = sorted(values, key=standing, reverse=True)
    places: list[Rank] = []
    begin = 0
    for end in range(1, len(order) + 1):
        above, below = order[begin:end], order[end:]
        if all(winner(x, y) == x for x in above for y in below):
            pairs = ((winner(x, y), x, y) for x, y in combinations(above, 2))
            ahead = tuple((best, y if best == x else x) for best, x, y in pairs if best is not None)
            places.append(Rank(rank=begin + 1, stacks=tuple(above), ahead=ahead))
            begin = end
    return tuple(places)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowAnswers:
    """All answers of one row; their labels are ids of stacks. ``samples``: those with a value, in the order of the
    plan. ``same``: the other stacks with a value, and which of them each is the same as."""

    samples: tuple[Sample, ...]
    answers: tuple[Answer, ...]
    better: Direction
    same: Mapping[str, str] = field(default_factory=dict)

    @property
    def leader(self) -> Sample | None:
        """The sample with the best median (the first of equals) of those that no other one is shown to beat; the first
        sample if no direction is preferred.

        Trials are paired by block, medians are not: a stack with missing blocks can be better in each common block and
        have the worse median.
        """
        sign = {Direction.HIGHER: 1, Direction.LOWER: -1, Direction.NEITHER: 0}[self.better]
        beaten = {each.other(each.winner) for each in self.answers if each.winner is not None}
        free = [sample for sample in self.samples if sample.stack not in beaten] or self.samples
        return max(free, key=lambda sample: sign * sample.median, default=None)

    def of(self, stack: str) -> list[Answer]:
        return [each for each in self.answers if stack in {each.over, each.under}]

    def oriented(self, stack: str) -> list[Answer]:
        """Return the answers about a stack, turned so that a ratio above 1 means that this stack is better."""
        over = self.better is not Direction.LOWER
        return [each if (each.over == stack) is over else each.inverted() for each in self.of(stack)]

    def ranking(self) -> tuple[Rank, ...]:
        """Return groups of stacks (ids) that are not shown to differ, the best first; empty if nothing can be
        ranked."""
        if self._is_untested(self.answers) or len(self.samples) < 2:
            return ()
        winners = {(each.over, each.under): each.winner if each.holds else None for each in self.answers}
        return rank({sample.stack: sample.median for sample in self.samples}, winners, better=self.better)

    @property
    def behind(self) -> set[str]:
        """The stacks that are shown not to be the best.

        All others, if the leader is better than every one of them (no correction needed: see :class:`Mark`); else those
        that the leader, or another stack, is better than after Holm's correction.
        """
        leader = self.leader
        answers = self.of(leader.stack) if leader else []
        ahead = [each for each in answers if leader and each.winner == leader.stack]
        if len(ahead) < len(answers):
            ahead = [each for each in self.answers if each.holds]
        beaten = {each.other(each.winner) for each in ahead if each.winner is not None}
        return beaten & {each.other(leader.stack) for each in answers if leader}

    def marks(self) -> dict[str, Mark]:
        """Return the mark of each stack (id) that has a value; see :class:`Mark`."""
        leader = self.leader
        answers = self.of(leader.stack) if leader else []
        if leader is None or self._is_untested(answers):
            return {sample.stack: Mark.NONE for sample in self.samples}
        beaten = self.behind
        marks = {each.other(leader.stack): Mark.MAYBE_BEST for each in answers}
        marks |= dict.fromkeys(beaten, Mark.NONE)
        # Stacks on another kind of machine are not compared, so the leader is not shown to be better than all.
        alone = len(answers) < len(self.samples) - 1
        marks[leader.stack] = Mark.BEST if len(beaten) == len(answers) and not alone else Mark.MAYBE_BEST
        return {sample.stack: marks.get(sample.stack, Mark.NONE) for sample in self.samples}

    def not_compared(self, stack: str) -> list[str]:
        """Return the stacks that have values but run on another kind of machine than this one."""
        compared = {name for each in self.of(stack) for name in (each.over, each.under)}
        return [each.stack for each in self.samples if each.stack not in {*compared, stack}]

    def repeated(self, *, first: bool) -> Sequence[Answer]:
        """Return the answers for which trials are repeated.

        For the ``first`` figure of a workload these are all; for others, and with more than ``ALL_MATTER`` stacks, only
        each stack against the leader. The leader is determined from the same trials, so a difference must be
        significant among all answers in this case too.
        """
        leader = None if first and len(self.samples) <= ALL_MATTER else self.leader
        return self.of(leader.stack) if leader else self.answers

    def _is_untested(self, answers: Sequence[Answer]) -> bool:
        return self.better is Direction.NEITHER or all(each.verdict in _UNTESTED for each in answers)


def looks_of(stopping: StoppingRule) -> Looks | None:
    """Return the schedule of interim analyses; None if the campaign has a fixed number of trials."""
    if stopping.precision is None:
        return None
    return Looks(first=stopping.trials, most=stopping.planned_most or stopping.most)


def comparable(one: StackSpec, other: StackSpec) -> bool:
    """Return whether two stacks may be compared: they run on the same kind of machine.

    The figures of a guest also depend on its machine. Different kernels on one kind of machine are compared: a study
    with two kernels asks for that.
    """
    return one.machine.type == other.machine.type


def answers_of_row(
    group: Group,
    metric: Metric,
    stopping: StoppingRule,
    *,
    noise: CampaignNoise,
    same: Mapping[str, SameStack],
    goal: Goal = Goal.DECIDED,
) -> RowAnswers:
    """Return the answers of a row of a campaign's table; ``noise`` and ``same``: of its trials.

    Stacks of which the kernel made the same are not compared: no number of trials would tell them apart.
    """
    samples, repeated = different(group.samples(metric), same)
    row = row_answers(
        samples, metric.better, looks=looks_of(stopping), margin=stopping.smallest(tail=metric.is_tail), goal=goal,
        unit=metric.unit, prior=noise.of_stacks(group, metric.name),
    )  # fmt: skip
    return replace(row, same=repeated)


def row_answers(
    samples: Sequence[Sample],
    better: Direction,
    *,
    looks: Looks | None = None,
    margin: float = MARGIN,
    goal: Goal = Goal.DECIDED,
    unit: Unit,
    prior: PriorOf = lambda *_: None,
) -> RowAnswers:
    """Ask about all pairs of stacks that have a value and may be compared; all of them are one family.

    ``unit``: that of the values (``read_as_counts``). ``prior``: returns the noise of a comparison of two stacks (ids),
    as other cells show it.
    """
    present = tuple(sample for sample in samples if sample.values)
    values = [value for sample in present for value in sample.values.values()]
    counts = read_as_counts(unit, better, values)
    questions = [
        Question(
            over=one.values, under=other.values, names=(one.stack, other.stack), better=better, margin=margin,
            unit=unit, counts=counts, prior=prior(one.stack, other.stack),
            block_s=None if one.block_s is None or other.block_s is None else one.block_s + other.block_s,
        )
        for one, other in combinations(present, 2)
        if comparable(one.spec, other.spec)
    ]  # fmt: skip
    found = answer(questions, looks=looks, goal=goal)
    return RowAnswers(samples=present, answers=found, better=better)


def named(answers: Sequence[Answer], labels: Mapping[str, str]) -> tuple[Answer, ...]:
    """Return the answers with the labels of the stacks instead of their ids."""
    return tuple(
        each.model_copy(update={"over": labels[each.over], "under": labels[each.under]}) for each in answers
    )
