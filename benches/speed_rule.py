"""Simulates the benefit and the cost of correcting figures by the speed of the CPU during their runs.

The cells do not differ. Disturbances come in bursts; the covariate shows them more or less well. Counts how often a
comparison of two cells shows a difference at two levels, without and with the correction (both with the noise of other
cells), and measures how wide its interval is. Prints the table of docs/methods.md; with ``--write``, replaces it in
that file. Fixed seeds; takes about a minute on one core.

    python benches/speed_rule.py [--groups 400] [--write docs/methods.md]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.methods_page import main, table

from fslab.stats.covariate import adjusted
from fslab.stats.moderation import fit, moderated
from fslab.stats.noise_prior import NoisePrior
from fslab.stats.paired import PAIRS_LEAST

COMMAND = "python benches/speed_rule.py --write docs/methods.md"
LEVELS = (0.05, 0.01)
PAIRS = 40  # compared pairs of cells in each simulated campaign
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One metric of a workload in a campaign.

    ``explained``: share of the figure's variance within cells and blocks that the speed explains. ``unlike``: standard
    deviation of the logarithm of the factor by which a cell is more or less sensitive to the speed. ``own``: by how
    many standard deviations the first cell itself slows the CPU's loop, which the rule has to notice; then only its
    pairs are compared. ``hour``: standard deviation of what all speeds of a block have in common, which the figures
    follow, and of something else that all figures of a block have in common. ``lost``: share of the trials that are
    missing. ``early``: the first cell has the first half of the blocks only, and all becomes faster by one standard
    deviation from block to block; then only its pairs are compared. ``others``: the shares that the speed explains in
    further workloads of the tool; all are compared. ``kind``: cells of a kind (a layout), or 0. ``still``: the first
    kind does not follow the speed, and has half of the noise; then only its cells are compared, with each other.
    """

    name: str
    cells: int = 6
    explained: float = 0.75
    unlike: float = 0.0
    own: float = 0.0
    hour: float = 0.0
    lost: float = 0.0
    early: bool = False
    others: tuple[float, ...] = ()
    kind: int = 0
    still: bool = False

    @property
    def kinds(self) -> list[str]:
        return [str(cell // self.kind if self.kind else 0) for cell in range(self.cells)]


CASES = (
    Case(name="explains 75 %, 6 cells"),
    Case(name="explains 75 %, 20 cells", cells=20),
    Case(name="explains 50 %, 6 cells", explained=0.5),
    Case(name="explains 25 %, 6 cells", explained=0.25),
    Case(name="explains 5 %, 6 cells", explained=0.05),
    Case(name="explains nothing, 6 cells", explained=0.0),
    Case(name="explains nothing, hours differ (s.d. 2)", explained=0.0, hour=2.0),
    Case(name="75 %, hours differ (s.d. 2)", hour=2.0),
    Case(name="75 %, hours differ, a third of the trials missing", hour=2.0, lost=1 / 3),
    Case(name="75 %, a drift, and one cell of 6 ended after half of the blocks", early=True),
    Case(name="75 %, sensitivity differs between cells (log. s.d. 0.4)", unlike=0.4),
    Case(name="7 workloads of 3 cells, 75 % in each", cells=3, others=(0.75,) * 6),
    Case(
        name="7 workloads of 3 cells, 10 % to 90 %",
        cells=3,
        explained=0.1,
        others=(0.2, 0.4, 0.5, 0.6, 0.8, 0.9),
    ),
    Case(
        name="7 workloads of 3 cells, 75 % in three, nothing in four",
        cells=3,
        others=(0.75, 0.75, 0.0, 0.0, 0.0, 0.0),
    ),
    Case(name="75 %, 5 layouts of 4 cells", cells=20, kind=4),
    Case(name="the same, the cells of one layout do not follow the speed", cells=20, kind=4, still=True),
    Case(name="75 %, one of 20 cells slows the loop by 0.1 s.d.", cells=20, own=0.1),
    Case(name="75 %, one of 20 cells slows the loop by 0.3 s.d.", cells=20, own=0.3),
    Case(name="75 %, one of 20 cells slows the loop by 1 s.d.", cells=20, own=1.0),
    Case(name="75 %, one of 20 cells slows the loop by 3 s.d.", cells=20, own=3.0),
    Case(name="the same, hours differ", cells=20, own=3.0, hour=2.0),
)


def bursts(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return disturbances of variance 1: many small ones and some bursts, which only slow."""
    often = random.random(shape) < 0.3
    found: Floats = 0.5 * random.normal(size=shape) + often * random.exponential(1.2, shape)
    scaled: Floats = (found - 0.36) / np.sqrt(0.25 + 0.3 * 2 * 1.44 - 0.36**2)
    return scaled


def campaign(random: np.random.Generator, case: Case, blocks: int) -> tuple[Floats, Floats]:
    """Return the covariate and the logarithm of the figure of each cell and block; NaN: missing."""
    shape = (case.cells, blocks)
    slow = bursts(random, shape) + case.hour * random.normal(size=(1, blocks))
    felt = np.exp(case.unlike * random.normal(size=(case.cells, 1)))
    figure = -np.sqrt(case.explained) * felt * slow + np.sqrt(1 - case.explained) * random.normal(size=shape)
    if case.still:
        figure[: case.kind] = 0.5 * random.normal(size=(case.kind, blocks))
    figure += case.hour * random.normal(size=(1, blocks))
    seen = slow.copy()
    seen[0] += case.own
    figure[random.random(shape) < case.lost] = np.nan
    if case.early:
        figure += np.arange(blocks)
        figure[0, (blocks + 1) // 2 :] = np.nan
    return seen, figure


def by_block(values: Floats) -> list[dict[int, float]]:
    return [
        {block: float(value) for block, value in enumerate(cell) if not np.isnan(value)} for cell in values
    ]


def corrected(
    drawn: Sequence[tuple[Floats, Floats]], kinds: list[str]
) -> list[list[dict[int, float]] | None]:
    """Return the corrected figures of each workload; None where the rule does not correct."""
    workloads = [
        [
            {block: (float(x[block]), y) for block, y in own.items()}
            for x, own in zip(seen, by_block(figure), strict=True)
        ]
        for seen, figure in drawn
    ]
    return adjusted(workloads, 0.0, [kinds] * len(workloads))


def interval(
    a: dict[int, float], b: dict[int, float], prior: NoisePrior | None
) -> tuple[float, float] | None:
    """Return p-value and half-width at 95 % of the difference; None if there are fewer than three common blocks."""
    differences = np.array([a[block] - b[block] for block in sorted(a.keys() & b.keys())])
    count = len(differences)
    if count < PAIRS_LEAST:
        return None
    own = differences.var(ddof=1, keepdims=True)
    variances, freedom = moderated(own, count - 1, None if prior is None else prior.times(2))
    error = float(np.sqrt(variances[0] / count))
    p_value = float(2 * stdtr(freedom[0], -abs(differences.mean()) / error))
    return p_value, float(-stdtrit(freedom[0], LEVELS[0] / 2)) * error


def row(case: Case, blocks: int, groups: int) -> list[str]:
    """Return the table row: false differences in % at each level, the ratio of widths, and how often it is used."""
    random = np.random.default_rng(7)
    hits, widths, count, used = np.zeros((2, len(LEVELS))), np.zeros(2), 0, 0
    for _ in range(groups):
        drawn = [
            campaign(random, replace(case, explained=each), blocks) for each in (case.explained, *case.others)
        ]
        plain = [by_block(figure) for _, figure in drawn]
        after = corrected(drawn, case.kinds)
        used += sum(each is not None for each in after)
        pairs = [
            pair for pair in combinations(range(case.kind if case.still else case.cells), 2)
            if not (case.own or case.early) or 0 in pair
        ]  # fmt: skip
        chosen = [pairs[each] for each in random.permutation(len(pairs))[:PAIRS]]
        # As in analysis.basis: corrected figures have the noise of corrected ones, others that of all as measured.
        measured, known = fit(plain), fit([each for each in after if each is not None])
        for way in range(2):
            compared = [
                interval(own[a], own[b], measured)
                if new is None or way == 0 or not (new[a] and new[b])
                else interval(new[a], new[b], known)
                for own, new in zip(plain, after, strict=True)
                for a, b in chosen
            ]
            found = [one for one in compared if one is not None]
            hits[way] += [sum(p_value < level for p_value, _ in found) for level in LEVELS]
            widths[way] += sum(width for _, width in found)
            count += len(found) if way else 0
    rates = 100 * hits / count
    each = [f"{plain:.1f} / {other:.1f}" for plain, other in rates.T]
    ratio = widths[1] / widths[0]
    return [
        case.name,
        str(blocks),
        *each,
        f"{ratio:.2f}",
        f"{ratio**2:.2f}",
        f"{100 * used / groups / (1 + len(case.others)):.0f}",
    ]


def tables(groups: int) -> str:
    head = [
        "data", "blocks", *(f"false at {100 * level:g} %" for level in LEVELS), "width at 95 %", "trials", "used in %",
    ]  # fmt: skip
    rows = [row(case, blocks, groups) for case in CASES for blocks in (5, 8)]
    about = (
        f"Cells without a difference, {groups} campaigns of each kind. *False*: comparisons that show a difference, "
        "in %, without / with the correction. *Width*: of the interval, with it ÷ without. *Trials*: needed for the "
        "same width, with it ÷ without (the square of the width). *Used*: workloads in which the rule applies it."
    )
    return "\n\n".join([f"Made by `{COMMAND}`.", about, table(head, rows)])


if __name__ == "__main__":
    sys.exit(main(__doc__, "speed-rule", ("--groups", 400), tables))
