"""Simulates the benefit and the cost of using the noise of other cells: intervals of few blocks, with and without it.

The cells do not differ; their noise has several shapes. Counts how often a comparison of two cells shows a difference
at two levels, and measures how wide its interval is. Prints the table of docs/simulations.md; ``--write`` replaces
it in that file. Fixed seeds; takes about a minute on one core.

    python benches/noise_rule.py [--groups 300] [--write docs/simulations.md]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main, table

from fslab.stats.moderated_variance import fit, moderated

COMMAND = "benches/noise_rule.py"
LEVELS = (0.05, 0.002)
PAIRS = 40  # compared pairs of cells in each simulated campaign
Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One metric of a campaign: ``workloads``, each with ``cells`` cells whose noise ``draw`` returns.

    ``unlike``: standard deviation of the logarithm of a factor of the noise of each workload. ``odd``: compare only
    pairs that contain the first cell. ``both``: compare only the first two cells.
    """

    name: str
    draw: Draw
    cells: int = 20
    workloads: int = 1
    unlike: float = 0.0
    odd: bool = False
    both: bool = False
    blocks: tuple[int, ...] = (3,)


def normal(random: np.random.Generator, cells: int, blocks: int) -> Floats:
    return random.normal(size=(cells, blocks))


def heavy(random: np.random.Generator, cells: int, blocks: int) -> Floats:
    return random.standard_t(3, size=(cells, blocks))


def of_its_own(spread: float) -> Draw:
    """Return normal noise with a random factor per cell. ``spread``: standard deviation of its logarithm."""

    def draw(random: np.random.Generator, cells: int, blocks: int) -> Floats:
        found: Floats = np.exp(spread * random.normal(size=(cells, 1))) * normal(random, cells, blocks)
        return found

    return draw


def louder(count: Callable[[int], int], factor: float) -> Draw:
    """Return normal noise that is ``factor`` times as large in the first ``count(cells)`` cells."""

    def draw(random: np.random.Generator, cells: int, blocks: int) -> Floats:
        found = normal(random, cells, blocks)
        found[: count(cells)] *= factor
        return found

    return draw


BOTH = (3, 5)
CASES = (
    Case(name="equal noise, 20 cells", draw=normal, blocks=BOTH),
    Case(name="heavy-tailed (t₃)", draw=heavy),
    Case(name="each cell its own noise (log. s.d. 0.6)", draw=of_its_own(0.6)),
    Case(
        name="each workload of 3 cells its own noise (log. s.d. 0.7)",
        draw=normal,
        cells=3,
        workloads=8,
        unlike=0.7,
    ),
    Case(
        name="3 workloads of 3 cells, one stack 6 times as noisy",
        draw=louder(lambda _: 1, 6),
        cells=3,
        workloads=3,
        blocks=(3, 4, 5, 6, 8),
    ),
    Case(name="half of the cells 4 times as noisy", draw=louder(lambda cells: cells // 2, 4)),
    Case(name="one of 20 cells 5 times as noisy, all pairs", draw=louder(lambda _: 1, 5)),
    Case(name="the same, its own pairs", draw=louder(lambda _: 1, 5), odd=True, blocks=BOTH),
    Case(name="two of 20 cells a tenth as noisy, all pairs", draw=louder(lambda _: 2, 0.1)),
    Case(name="the same, the two beside each other", draw=louder(lambda _: 2, 0.1), both=True, blocks=BOTH),
)


def row(case: Case, blocks: int, groups: int) -> list[str]:
    """Return the table row: false differences in % at each level, and the ratio of the interval widths at each level.

    False differences: without / with the noise of other cells. Ratio: with ÷ without.
    """
    random = np.random.default_rng(7)
    hits, widths, count = np.zeros((2, len(LEVELS))), np.zeros((2, len(LEVELS))), 0
    for _ in range(groups):
        sizes = np.exp(case.unlike * random.normal(size=case.workloads))
        drawn = [size * case.draw(random, case.cells, blocks) for size in sizes]
        prior = fit([[dict(enumerate(map(float, cell))) for cell in cells] for cells in drawn])
        assert prior is not None
        pairs = [pair for pair in combinations(range(case.cells), 2) if not case.odd or 0 in pair]
        pairs = pairs[:1] if case.both else pairs
        differences = [cells[one] - cells[other] for cells in drawn for one, other in pairs]
        chosen = random.permutation(len(differences))[:PAIRS]
        samples = np.array([differences[each] for each in chosen])
        own = samples.var(axis=1, ddof=1)
        both = ((own, np.full(len(own), blocks - 1.0)), moderated(own, blocks - 1, prior.times(2)))
        for way, (variances, freedom) in enumerate(both):
            errors = np.sqrt(variances / blocks)
            p_values = 2 * stdtr(freedom, -np.abs(samples.mean(axis=1)) / errors)
            for number, level in enumerate(LEVELS):
                hits[way, number] += (p_values < level).sum()
                widths[way, number] += (-stdtrit(freedom, level / 2) * errors).sum()
        count += len(chosen)
    rates = 100 * hits / count
    each = [f"{plain:.2f} / {other:.2f}" for plain, other in rates.T]
    return [case.name, str(blocks), *each, *(f"{ratio:.2f}" for ratio in widths[1] / widths[0])]


def tables(groups: int) -> str:
    head = [
        "data", "blocks", *(f"false at {100 * level:g} %" for level in LEVELS),
        *(f"width at {100 - 100 * level:g} %" for level in LEVELS),
    ]  # fmt: skip
    rows = [row(case, blocks, groups) for case in CASES for blocks in case.blocks]
    about = (
        f"Cells without a difference, {groups} campaigns of each kind. *False*: comparisons that show a difference, "
        "in %, without / with the noise of other cells. *Width*: of the interval, with it ÷ without."
    )
    return "\n\n".join([f"Made by `{COMMAND}`.", about, table(head, rows)])


if __name__ == "__main__":
    sys.exit(main(__doc__, "noise-rule", ("--groups", 300), tables))
