"""Simulates whole studies: how often verdicts on claims are false, and how long it takes to reach them.

A study has stacks whose true levels are known (some are exactly equal), workloads, and claims of each kind: orders,
extremes with several parts, ratios, ties. The values of its campaign are random, with the shapes of ``stopping_data``;
the schedule and the verdicts are computed by fslab. Prints the tables of docs/simulations.md; ``--write`` replaces
them in that file. Fixed seeds; takes about 12 minutes on one core.

    python benches/claims_rule.py [--studies 16] [--write docs/simulations.md]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import exp, inf, log, log1p
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main, table
from benches.stopping_data import MOST, SHAPES, Shape

from fslab.analysis.noise_pools import CampaignNoise
from fslab.analysis.table_rows import looks_of
from fslab.campaign.schedule import Schedule
from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.claims.build import asked_of
from fslab.claims.campaign_estimates import Trials
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import DECISIVE, UPHELD, ClaimVerdict, result_of
from fslab.claims.parts import Bounds, Part, Quotient
from fslab.claims.requirement_check import answers
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope
from fslab.stopping_settings import MARGIN, StoppingRule, Until
from fslab.trial_record import Status, TrialRecord, Value
from fslab.units import Unit

COMMAND = "python benches/claims_rule.py --write docs/simulations.md"
STACKS = ("ext4", "xfs", "btrfs", "f2fs")
WORKLOADS = tuple("abcdefgh")
# Possible differences between the logarithms of the levels of two neighbouring stacks.
APART = (0.0, 0.0, 0.0, 0.03, 0.08, 0.2, 0.5, 1.0)
COSTS_S = (1.5, 3.0, 6.0)
LONGEST = 10 * MOST  # blocks of one campaign; each cell is in at most 40 of them
BUDGET_S = 28 * 60.0
SPREADS = (0.03, 0.1)
TRIALS = 4  # blocks before the first look
FSLAB = "with it (fslab)"
# Whether comparisons also use the noise of other cells, by the name of the rule.
RULES = {"without the noise of other cells": False, FSLAB: True}
# Not simulated here, where all cells of a study have the same shape.
ONE_CELL = {"spikes in one cell only", "bimodal in one cell only", "the same, 85 : 15"}
EQUAL = {"log-normal", "autocorrelated (AR 0.3)", "autocorrelated (AR 0.5)"}
CLOSED = {*DECISIVE, *UPHELD}
Truth = Mapping[str, float]  # the logarithm of the true level, by cell id


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulated:
    """A simulated study. ``cost_s``: duration of one trial in seconds, by cell id."""

    cells: tuple[Cell, ...]
    claims: tuple[Claim, ...]
    truth: Truth
    cost_s: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """The result of a campaign. ``verdicts``: one per claim. ``false``: number of false verdicts.

    ``covered``: fraction of the 95 % intervals that contain the true value. ``decided_s``: duration of the trials
    until each claim was first decided, in seconds; infinite if never. ``spent_s``: duration of all trials.
    """

    verdicts: tuple[ClaimVerdict, ...]
    false: int
    covered: float
    decided_s: tuple[float, ...]
    spent_s: float

    @property
    def decided(self) -> int:
        return sum(verdict in CLOSED for verdict in self.verdicts)


def drawn(rng: random.Random, *, equal: bool = False) -> Simulated:
    """Return a study with random levels, costs and claims. Some of the claims are true, others are false.

    ``equal``: all stacks have the same level; the claims are as if they had not.
    """
    medium = MediumSpec(name="m", type="ram")
    parameters = {"rw": "randwrite", "size": "64m", "runtime": "1s"}
    cells = tuple(
        Cell(
            stack=StackSpec(name=stack, medium=medium, filesystem=stack),
            workload=WorkloadSpec(name=workload, tool="fio", parameters=parameters),
        )
        for workload in WORKLOADS
        for stack in STACKS
    )
    truth: dict[str, float] = {}
    cost: dict[str, float] = {}
    claims: list[Claim] = []
    for workload in WORKLOADS:
        own = [cell for cell in cells if cell.workload.name == workload]
        levels, level = [], 0.0
        for _ in own:
            levels.append(level)
            level += rng.choice(APART)
        rng.shuffle(levels)
        truth |= {cell.id: 0.0 if equal else level for cell, level in zip(own, levels, strict=True)}
        cost |= dict.fromkeys((cell.id for cell in own), rng.choice(COSTS_S))
        level_of = {cell.stack.name: level for cell, level in zip(own, levels, strict=True)}
        claims += [
            Claim(id=f"{workload}{number}", says="s", that=that, on=(workload,), metric="iops", margin=MARGIN)
            for number, that in enumerate(_said(rng, level_of))
        ]
    return Simulated(cells=cells, claims=tuple(claims), truth=truth, cost_s=cost)


def _said(rng: random.Random, level: Mapping[str, float]) -> Iterator[tuple[str, ...]]:
    """Yield the statements (``that``) of three claims about one workload: an extreme, a ratio, a tie.

    Each of them is random: it may be true, almost true, or false. ``level``: the logarithm of the level, by stack.
    """
    names = sorted(level, key=level.__getitem__, reverse=True)
    best = names[0] if rng.random() < 0.6 else rng.choice(names)
    yield (f"{best} is first",)
    one, other = rng.sample(names, 2)
    printed = exp(level[one] - level[other]) * rng.choice((0.4, 0.8, 1.0, 1.0, 1.25, 2.5))
    size = f"{one} / {other} ~ {printed:.3f} within 15%"
    yield (f"{one} > {other}", size) if printed > 1.2 else (size,)
    one, other = rng.sample(names, 2)
    yield (f"{one} ~ {other} within 10%",)


def is_false(verdict: ClaimVerdict, parts: Sequence[Part], truth: Truth) -> bool:
    """Return whether a verdict contradicts the true ratios. An open verdict is never false."""
    at = [_true_ratio(part, truth) for part in parts]
    held = [_lies(part.bounds, value) for part, value in zip(parts, at, strict=True)]
    near = [abs(log(value)) <= log1p(MARGIN) + 1e-9 for value in at]
    match verdict:
        case ClaimVerdict.REPLICATED:
            return not all(held)
        case ClaimVerdict.TIE:
            return not any(near)
        case ClaimVerdict.SMALL:
            return not any(small and holds for small, holds in zip(near, held, strict=True))
        case ClaimVerdict.OPPOSITE:
            return all(holds or not small for small, holds in zip(near, held, strict=True))
        case ClaimVerdict.REVERSED:
            sides = [part.bounds if part.bounds.is_direction else part.bounds.side for part in parts]
            return all(
                side is None or not _beyond(side, value) for side, value in zip(sides, at, strict=True)
            )
        case ClaimVerdict.DIFFERS:
            return all(held)
        case _:
            return False


def _lies(bounds: Bounds, value: float) -> bool:
    """Return whether a value lies within the bounds, with a relative tolerance of 1e-9 for rounding errors.

    If the bounds are strict, a value at their lower end is outside.
    """
    low = bounds.low * (1 + 1e-9) if bounds.strict else bounds.low * (1 - 1e-9)
    return low <= value <= (bounds.high if bounds.high == inf else bounds.high * (1 + 1e-9))


def _beyond(side: Bounds, value: float) -> bool:
    """Return whether a value and the bounds ``side`` are on different sides of 1."""
    return value < 1 - 1e-9 if side.low >= 1 else value > 1 + 1e-9


def _true_ratio(part: Part, truth: Truth) -> float:
    assert isinstance(part, Quotient)
    return exp(sum(weight * truth[figure.cell.id] for figure, weight in part.weights))


def values_of(study: Simulated, shape: Shape, spread: float, seed: int) -> dict[tuple[str, int], float]:
    """Return the measured values, by cell id and block. ``spread``: standard deviation of the logarithm."""
    rng = np.random.default_rng(seed)
    made: dict[tuple[str, int], float] = {}
    for cell in study.cells:
        noise = spread * np.concatenate([shape.a(rng, 1)[0] for _ in range(LONGEST // MOST)])
        made |= {(cell.id, block): exp(study.truth[cell.id] + noise[block]) for block in range(LONGEST)}
    return made


def run(study: Simulated, shape: Shape, spread: float, seed: int, *, others: bool) -> Course:
    """Simulate a campaign of the study that ends when its goal or the budget is reached."""
    with nullcontext() if others else patch.object(CampaignNoise, "prior", lambda *_: None):
        return _run(study, shape, spread, seed)


def _run(study: Simulated, shape: Shape, spread: float, seed: int) -> Course:
    stopping = StoppingRule(trials=TRIALS, precision=MARGIN, until=Until.CLAIMS, max_trials=MOST)
    schedule = Schedule(
        cells=study.cells, stopping=stopping, seed=seed, claims=study.claims, budget_s=BUDGET_S
    )
    values = values_of(study, shape, spread, seed)
    scope = Scope(cells=study.cells)
    asked = [asked_of(claim, scope) for claim in study.claims]
    records: list[TrialRecord] = []
    spent_s, ran = 0.0, 0
    first = [inf] * len(asked)
    while True:
        over = False
        for block, cell in schedule.trials[ran:]:
            if spent_s + study.cost_s[cell.id] > BUDGET_S:
                over = True
                break
            spent_s += study.cost_s[cell.id]
            records.append(_record(cell, block, values[cell.id, block % LONGEST], study.cost_s[cell.id]))
        ran = len(records)
        evaluator = Evaluator(trials=Trials(records=records), looks=looks_of(stopping))
        verdicts = tuple(answer.verdict for answer in answers(asked, evaluator))
        first = [
            min(when, spent_s) if verdict in CLOSED else when
            for when, verdict in zip(first, verdicts, strict=True)
        ]
        before = len(schedule.trials)
        if over:
            break
        schedule.look(records)
        if len(schedule.trials) == before:
            break
    parts = [one.parts for one in asked]
    false = sum(is_false(verdict, own, study.truth) for verdict, own in zip(verdicts, parts, strict=True))
    return Course(
        verdicts=verdicts, false=false, covered=_covered(evaluator, parts, study.truth), decided_s=tuple(first),
        spent_s=spent_s,
    )  # fmt: skip


def _covered(evaluator: Evaluator, parts: Sequence[Sequence[Part]], truth: Truth) -> float:
    """Return the fraction of the 95 % intervals of all parts that contain the true ratio; 1 without intervals."""
    hits = []
    for part in (part for own in parts for part in own):
        interval = evaluator.estimate(part, 0.95).interval
        if interval is not None:
            value = _true_ratio(part, truth)
            hits.append(interval.low * (1 - 1e-9) <= value <= interval.high * (1 + 1e-9))
    return sum(hits) / len(hits) if hits else 1.0


def _record(cell: Cell, block: int, value: float, duration_s: float) -> TrialRecord:
    return TrialRecord.model_construct(
        key=TrialKey(campaign="c", block=block, seed=1), cell=cell, status=Status.OK, duration_s=duration_s,
        started=datetime(2026, 1, 1, tzinfo=UTC), metrics={"write_iops": Value(value=value, unit=Unit.IOPS)},
        probes={}, validity=(), raw={}, error=None, failure=None,
    )  # fmt: skip


def over(
    shape: Shape,
    spread: float,
    studies: int,
    *,
    others: bool = True,
    longer: float = 1.0,
    equal: bool = False,
) -> tuple[float, float, list[str]]:
    """Simulate two campaigns of each study. Return the share of false verdicts and that of intervals that cover the
    true ratio, in %, and the table cells of one row, in the order of ``HEAD``.

    ``others``: comparisons also use the noise of other cells. ``longer``: factor of the duration of trials.
    ``equal``: as for ``drawn``.
    """
    decided = false = claims = 0
    covered: list[float] = []
    waited: list[float] = []
    same: list[bool] = []
    for number in range(studies):
        study = drawn(random.Random(number), equal=equal)
        study = replace(study, cost_s={cell: cost * longer for cell, cost in study.cost_s.items()})
        runs = [run(study, shape, spread, 2 * number + again, others=others) for again in (0, 1)]
        for course in runs:
            claims += len(course.verdicts)
            decided += course.decided
            false += course.false
            covered.append(course.covered)
            waited += [when / 60 for when in course.decided_s if when < inf]
        pairs = zip(runs[0].verdicts, runs[1].verdicts, strict=True)
        same += [result_of(one) == result_of(other) for one, other in pairs if {one, other} <= CLOSED]
    cells = [f"{100 * decided / claims:.0f}", f"{np.mean(waited):.1f}", f"{100 * np.mean(same):.0f}"]
    return 100 * false / max(1, decided), float(100 * np.mean(covered)), cells


HEAD = ["decided %", "minutes to a verdict", "two campaigns agree %"]


def tables(studies: int) -> str:
    by_rule = [
        (name + also, spread, over(SHAPES[0], spread, studies, others=others, longer=longer))
        for longer, also in ((1.0, ""), (4.0, ", trials 4 times as long"))
        for name, others in RULES.items()
        for spread in SPREADS
    ]
    alike = [
        (shape.name, spread, over(shape, spread, studies, equal=True))
        for shape in SHAPES
        if shape.name in EQUAL
        for spread in SPREADS
    ]
    count = len(drawn(random.Random(0)).claims)
    cells = len(STACKS) * len(WORKLOADS)
    false = max(row[0] for _, _, row in (*by_rule, *alike))
    covered = min(row[1] for _, _, row in (*by_rule, *alike))
    about = (
        f"Each row: {2 * studies} campaigns of {BUDGET_S / 60:g} minutes, two of each of {studies} studies with "
        f"{count} claims about {cells} cells of {COSTS_S[0]:g} to {COSTS_S[-1]:g} s a trial. In each row, at most "
        f"{false:.1f} % of the verdicts are false, and at least {covered:.1f} % of the 95 % intervals cover the true "
        "ratio. Log-normal:"
    )
    text = [
        f"Made by `{COMMAND}`.",
        about,
        _rows("rule", by_rule),
        "fslab's rule, all stacks equal:",
        _rows("data", alike),
    ]
    return "\n\n".join(text)


def _rows(first: str, rows: Sequence[tuple[str, float, tuple[float, float, list[str]]]]) -> str:
    lines = [[name, f"{100 * spread:g} %", *cells] for name, spread, (_, _, cells) in rows]
    return table([first, "noise", *HEAD], lines, words=2)


if __name__ == "__main__":
    sys.exit(main(__doc__, "claims-rule", ("--studies", 16), tables))
