"""Simulates several campaigns of a study whose stacks do not differ: figures change between campaigns.

fslab's own code estimates what changes (``stats.campaign_spread``) and combines the campaigns. Counts how often a
difference is shown, by one campaign and by all. Prints the table of docs/simulations.md; ``--write`` replaces it in
that file. Fixed seeds; takes about a minute on one core.

    python benches/campaigns_rule.py [--studies 200] [--write docs/simulations.md]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import exp
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main, table

from fslab.answers.campaigns import fit, over_campaigns
from fslab.answers.ratio import Question, estimate

COMMAND = "benches/campaigns_rule.py"
WORKLOADS, CELLS, BLOCKS, NOISE = 15, 3, 6, 0.03
CAMPAIGNS = (2, 5)
Floats = NDArray[np.float64]
Random = np.random.Generator


def changing(
    change: float, shift: float, own: float = 0.0, loud: float = 1.0
) -> Callable[[Random, int], Floats]:
    """Return a maker of the true logarithms by workload, cell and campaign. ``own``: how much the sizes of workloads
    differ (standard deviation of their logarithm). ``loud``: how many times as much the first cell changes."""

    def made(random: Random, campaigns: int) -> Floats:
        size = np.exp(random.normal(scale=own, size=(WORKLOADS, 1, 1)))
        cells = random.normal(scale=change, size=(WORKLOADS, CELLS, campaigns))
        cells[:, 0] *= loud
        return size * (cells + random.normal(scale=shift, size=(WORKLOADS, 1, campaigns)))

    return made


def noise(random: Random, size: tuple[int, ...], lag1: float) -> Floats:
    """Return AR(1) noise along the last axis."""
    drawn = random.normal(scale=NOISE, size=size)
    for block in range(1, size[-1]):
        drawn[..., block] = lag1 * drawn[..., block - 1] + (1 - lag1**2) ** 0.5 * drawn[..., block]
    return drawn


DATA: dict[str, tuple[Callable[[Random, int], Floats], float]] = {
    "nothing changes": (changing(0, 0), 0.0),
    "nothing changes, AR 0.5 within campaigns": (changing(0, 0), 0.5),
    "figures 3 %, workloads 10 %": (changing(0.03, 0.1), 0.0),
    "figures 10 %, workloads 10 %": (changing(0.1, 0.1), 0.0),
    "each workload its own (log. s.d. 0.7), on average as above": (changing(0.1, 0.1, own=0.7), 0.0),
    "one stack 3 times as much as the others, its own pairs": (changing(0.05, 0.1, loud=3), 0.0),
}


def rows(name: str, count: int) -> list[list[str]]:
    make, lag1 = DATA[name]
    found = []
    for campaigns in CAMPAIGNS:
        random, false = np.random.default_rng(5), np.zeros(2)
        for _ in range(count):
            true = make(random, campaigns)
            values = true[..., None] + noise(random, (*true.shape, BLOCKS), lag1)
            data = [
                [
                    [
                        [dict(enumerate(values[work, cell, campaign])) for cell in range(CELLS)]
                        for campaign in range(campaigns)
                    ]
                ]
                for work in range(WORKLOADS)
            ]
            spread = fit(data)
            assert spread is not None
            for work in range(WORKLOADS):
                each = [
                    estimate(
                        Question(
                            over=_figures(values[work, 0, campaign]),
                            under=_figures(values[work, 1, campaign]),
                        )
                    )
                    for campaign in range(campaigns)
                ]
                over = over_campaigns(each, spread, [[1.0, -1.0]])
                false += [bool(one.differs) for one in (each[0], over)]
        alone, together = 100 * false / (count * WORKLOADS)
        found.append([name, str(campaigns), f"{alone:.1f}", f"{together:.1f}"])
    return found


def _figures(values: Floats) -> dict[int, float]:
    return {block: exp(value) for block, value in enumerate(values)}


def tables(count: int) -> str:
    head = ["changes between campaigns", "campaigns", "by one: false %", "by all: false %"]
    about = (
        f"Studies of {WORKLOADS} workloads on {CELLS} stacks that do not differ, {BLOCKS} blocks a campaign, noise "
        f"{NOISE * 100:g} %; {count} studies of each kind."
    )
    return "\n\n".join(
        [f"Made by `{COMMAND}`.", about, table(head, [row for name in DATA for row in rows(name, count)])]
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, "campaigns-rule", ("--studies", 200), tables))
