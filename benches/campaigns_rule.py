"""Simulates several campaigns of a study whose stacks do not differ: figures change between campaigns.

fslab's own code estimates what changes (``answers.across_campaigns``) and combines the campaigns. Counts how often a
difference is shown, by one campaign and by all. Prints the table of docs/simulations.md; ``--write`` replaces it in
that file. Fixed seeds; takes about four minutes on one core.

    python benches/campaigns_rule.py [--studies 200] [--write docs/simulations.md]
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, auto
from math import exp
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main, table

from fslab.answers.across_campaigns import fit, over_campaigns
from fslab.answers.ratio import Estimate, NoisePrior, Question, Values, estimate, fit_noise

COMMAND = "benches/campaigns_rule.py"
WORKLOADS, BLOCKS, NOISE = 15, 6, 0.03
CAMPAIGNS = (2, 5)
Floats = NDArray[np.float64]
Random = np.random.Generator
Weights = list[tuple[int, int, float]]  # by workload and stack


class Claim(Enum):
    """What is claimed of figures that do not differ: of two stacks by workload or on average, of two workloads, of one
    figure."""

    PAIR = auto()
    MEAN = auto()
    WORKLOADS = auto()
    FIGURE = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Standard deviations of what changes between campaigns: each of the figures, all of a workload, of a stack, of
    the machine. ``own``: how much the sizes of workloads differ (of their logarithm). ``loud``: how many times as much
    the figures of the first stack change. ``lag1``: the autocorrelation of trials."""

    figures: float = 0.0
    workloads: float = 0.0
    stacks: float = 0.0
    machine: float = 0.0
    own: float = 0.0
    loud: float = 1.0
    count: int = 3
    lag1: float = 0.0
    claim: Claim = Claim.PAIR

    def values(self, random: Random, campaigns: int) -> Floats:
        """Return logarithms by workload, stack, campaign and block."""
        size = np.exp(random.normal(scale=self.own, size=(WORKLOADS, 1, 1)))
        figures = random.normal(scale=self.figures, size=(WORKLOADS, self.count, campaigns))
        figures[:, 0] *= self.loud
        true = (
            size * (figures + random.normal(scale=self.workloads, size=(WORKLOADS, 1, campaigns)))
            + random.normal(scale=self.stacks, size=(1, self.count, campaigns))
            + random.normal(scale=self.machine, size=(1, 1, campaigns))
        )
        return true[..., None] + noise(random, (*true.shape, BLOCKS), self.lag1)


def noise(random: Random, size: tuple[int, ...], lag1: float) -> Floats:
    """Return AR(1) noise along the last axis."""
    drawn = random.normal(scale=NOISE, size=size)
    for block in range(1, size[-1]):
        drawn[..., block] = lag1 * drawn[..., block - 1] + (1 - lag1**2) ** 0.5 * drawn[..., block]
    return drawn


KINDS = {
    "nothing": Kind(),
    "nothing, but AR 0.5 within campaigns": Kind(lag1=0.5),
    "figures 3 %, workloads 10 %": Kind(figures=0.03, workloads=0.1),
    "each workload its own (log. s.d. 0.7)": Kind(figures=0.03, workloads=0.1, own=0.7),
    "one of 3 stacks 3 times as much, its pairs": Kind(figures=0.05, workloads=0.1, loud=3),
    "one of 6 stacks 3 times as much, its pairs": Kind(figures=0.05, workloads=0.1, loud=3, count=6),
    "stacks 3 %, figures 1 %": Kind(stacks=0.03, figures=0.01),
    "stacks and figures 1 %, claims on average": Kind(stacks=0.01, figures=0.01, claim=Claim.MEAN),
    "the machine 5 %, claims of two workloads": Kind(machine=0.05, figures=0.01, claim=Claim.WORKLOADS),
    "the machine 5 %, claims of one figure": Kind(machine=0.05, figures=0.01, claim=Claim.FIGURE),
}


def row(name: str, count: int) -> list[str]:
    kind = KINDS[name]
    alone: list[bool] = []
    shown: list[str] = []
    for campaigns in CAMPAIGNS:
        random, found = np.random.default_rng(5), []
        for _ in range(count):
            values = kind.values(random, campaigns)
            spread = fit([[[_by_stack(each) for each in np.moveaxis(work, 1, 0)]] for work in values])
            assert spread is not None
            priors = [
                fit_noise([[*_by_stack(work[:, one]).values()] for work in values])
                for one in range(campaigns)
            ]
            for weights in _claims(kind.claim):
                each = [_alone(weights, values[:, :, one], priors[one]) for one in range(campaigns)]
                alone.append(bool(each[0].differs))
                found.append(over_campaigns(each, spread, weights))
        width = exp(float(np.median([one.half_width or 0.0 for one in found]))) - 1
        shown += [_percent(sum(bool(one.differs) for one in found) / len(found)), _percent(width)]
    return [name, _percent(sum(alone) / len(alone)), *shown]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _claims(claim: Claim) -> list[Weights]:
    """Return the weights of the figures of each claim."""
    works = range(WORKLOADS)
    match claim:
        case Claim.PAIR:
            return [[(work, 0, 1.0), (work, 1, -1.0)] for work in works]
        case Claim.MEAN:
            return [[(work, stack, sign / WORKLOADS) for stack, sign in ((0, 1), (1, -1)) for work in works]]
        case Claim.WORKLOADS:
            return [[(work, 0, 1.0), (work + 1, 0, -1.0)] for work in works[:-1]]
        case Claim.FIGURE:
            return [[(work, 0, 1.0)] for work in works]


def _alone(weights: Weights, values: Floats, prior: NoisePrior | None) -> Estimate:
    """Return the estimate of one campaign. ``values``: by workload, stack and block."""
    over, under = (
        _figures(sum(max(sign * weight, 0.0) * values[work, stack] for work, stack, weight in weights))
        for sign in (1, -1)
    )
    paired = len(weights) == 2 and weights[0][0] == weights[1][0]
    both = NoisePrior.of_sum([prior, prior]) if paired and prior else None
    return estimate(Question(over=over, under=under, prior=both))


def _figures(logarithms: Floats) -> dict[int, float]:
    return {block: exp(value) for block, value in enumerate(logarithms)}


def _by_stack(values: Floats) -> dict[Hashable, Values]:
    """Return the figures of one workload in one campaign. ``values``: by stack and block."""
    return {stack: dict(enumerate(map(float, each))) for stack, each in enumerate(values)}


def tables(count: int) -> str:
    head = [
        "changes between campaigns",
        "false by one %",
        *(f"{what} {each}" for each in CAMPAIGNS for what in ("by", "±")),
    ]
    about = (
        f"Studies of {WORKLOADS} workloads on 3 stacks that do not differ, {BLOCKS} blocks a campaign, noise "
        f"{NOISE * 100:g} %; {count} studies of each kind. *±*: half the interval, in %."
    )
    return "\n\n".join([f"Made by `{COMMAND}`.", about, table(head, [row(name, count) for name in KINDS])])


if __name__ == "__main__":
    sys.exit(main(__doc__, "campaigns-rule", ("--studies", 200), tables))
