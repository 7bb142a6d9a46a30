"""Made-up measurements for the simulation of stopping rules: cells whose true ratio is known.

The logarithm of each value has the stated standard deviation about its cell's level, of one shape or another.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, sqrt

MOST = 40  # blocks that a rule may ask for
Cell = list[float]  # a value for each block


def normal(rng: random.Random, _block: int, _before: float) -> float:
    return rng.gauss(0, 1)


def heavy_tailed(rng: random.Random, _block: int, _before: float) -> float:
    """Student's t with 3 degrees of freedom, scaled to a standard deviation of 1."""
    return rng.gauss(0, 1) / sqrt(rng.gammavariate(1.5, 2) / 3) / sqrt(3)


def spiky(rng: random.Random, _block: int, _before: float) -> float:
    """One trial in ten is slower by a Pareto-distributed factor; only the others have the stated spread."""
    return rng.gauss(0, 1) - (3 * rng.paretovariate(1.5) if rng.random() < 0.1 else 0)


def bimodal(rng: random.Random, _block: int, _before: float) -> float:
    """Three trials in ten are on a lower level."""
    return rng.gauss(0, 0.2) + 0.98 * (-1.528 if rng.random() < 0.3 else 0.655)


def autocorrelated(rng: random.Random, block: int, before: float) -> float:
    """AR(1) with 0.5, each cell on its own."""
    return rng.gauss(0, 1) if block == 0 else 0.5 * before + sqrt(0.75) * rng.gauss(0, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """``drift`` is a share per block, common to both cells."""

    name: str
    a: Callable[[random.Random, int, float], float]
    b: Callable[[random.Random, int, float], float]
    drift: float = 0.0


SHAPES = (
    Shape(name="log-normal", a=normal, b=normal),
    Shape(name="heavy-tailed (t₃)", a=heavy_tailed, b=heavy_tailed),
    Shape(name="spikes (Pareto, 10 %)", a=spiky, b=spiky),
    Shape(name="spikes in one cell only", a=normal, b=spiky),
    Shape(name="bimodal (70 : 30)", a=bimodal, b=bimodal),
    Shape(name="drifting, −1 % a block", a=normal, b=normal, drift=-0.01),
    Shape(name="autocorrelated (AR 0.5)", a=autocorrelated, b=autocorrelated),
)


def measure(rng: random.Random, shape: Shape, spread: float, ratio: float) -> tuple[Cell, Cell]:
    """Values of the two cells for each block; a is ``ratio`` times b."""
    cells = []
    for noise, level in ((shape.a, ratio), (shape.b, 1.0)):
        cell, last = [], 0.0
        for block in range(MOST):
            last = noise(rng, block, last)
            cell.append(1000 * level * exp(spread * last + shape.drift * block))
        cells.append(cell)
    return cells[0], cells[1]
