"""Synthetic measurements for the simulation of stopping rules: cells whose true ratio is known.

The logarithm of each value has the given standard deviation around the level of its cell, with one of several shapes.
A ratio of 1 means equal means of the logarithms, where spikes do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

MOST = 40  # largest number of blocks that a rule can use
Floats = NDArray[np.float64]
# Returns noise for a number of comparisons: one row for each, one column per block.
Noise = Callable[[np.random.Generator, int], Floats]


def normal(rng: np.random.Generator, count: int) -> Floats:
    noise: Floats = rng.standard_normal((count, MOST))
    return noise


def quiet(rng: np.random.Generator, count: int) -> Floats:
    """Return normal noise with a fifth of the spread, as within one mode of the bimodal shapes."""
    return 0.2 * normal(rng, count)


def heavy_tailed(rng: np.random.Generator, count: int) -> Floats:
    """Return Student's t with 3 degrees of freedom, scaled to a standard deviation of 1."""
    noise: Floats = rng.standard_t(3, (count, MOST)) / np.sqrt(3)
    return noise


def spiky(rng: np.random.Generator, count: int) -> Floats:
    """Return normal noise in which one trial in ten is much slower.

    The logarithm of the factor is Pareto-distributed (shape 1.5, at least 3 times the spread). It does not count as
    spread.
    """
    spikes = 3 * (1 + rng.pareto(1.5, (count, MOST)))
    return normal(rng, count) - np.where(rng.random((count, MOST)) < 0.1, spikes, 0)


def bimodal(rng: np.random.Generator, count: int, share: float = 0.3) -> Floats:
    """Return noise with two modes; a ``share`` of the trials is in the lower one. Mean 0, standard deviation 1."""
    lower = rng.random((count, MOST)) < share
    levels = np.where(lower, share - 1, share) / np.sqrt(share * (1 - share))
    noise: Floats = quiet(rng, count) + np.sqrt(1 - 0.2**2) * levels
    return noise


def autocorrelated(rng: np.random.Generator, count: int, along: float = 0.5) -> Floats:
    """Return an AR(1) series per row with the autocorrelation ``along``, independent of the other rows."""
    noise = normal(rng, count)
    for block in range(1, MOST):
        noise[:, block] = along * noise[:, block - 1] + np.sqrt(1 - along**2) * noise[:, block]
    return noise


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """The noise of the cells a and b."""

    name: str
    a: Noise
    b: Noise


SHAPES = (
    Shape(name="log-normal", a=normal, b=normal),
    Shape(name="heavy-tailed (t₃)", a=heavy_tailed, b=heavy_tailed),
    Shape(name="spikes (Pareto, 10 %)", a=spiky, b=spiky),
    Shape(name="spikes in one cell only", a=normal, b=spiky),
    Shape(name="bimodal (70 : 30)", a=bimodal, b=bimodal),
    Shape(name="bimodal in one cell only", a=quiet, b=bimodal),
    Shape(name="the same, 85 : 15", a=quiet, b=partial(bimodal, share=0.15)),
    Shape(
        name="autocorrelated (AR 0.3)",
        a=partial(autocorrelated, along=0.3),
        b=partial(autocorrelated, along=0.3),
    ),
    Shape(name="autocorrelated (AR 0.5)", a=autocorrelated, b=autocorrelated),
)


def measure(
    rng: np.random.Generator, shape: Shape, spread: float, ratio: float, count: int
) -> tuple[Floats, Floats]:
    """Return the logarithms of the values of cells a and b, one row for each of ``count`` comparisons.

    ``ratio``: the true ratio a/b. ``spread``: the factor of the noise, its standard deviation for most shapes.
    """
    return np.log(ratio) + spread * shape.a(rng, count), spread * shape.b(rng, count)
