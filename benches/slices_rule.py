"""Simulates rounds in slices: how often intervals over rounds contain the true ratio, with noise inside the rounds.

Two stacks take turns in slices, in random order, each order followed by its reverse; a round gives one rate of each.
fslab's own code computes the intervals: after a fixed number of rounds, and at all looks that a budget of so many
rounds plans. Prints a paragraph of docs/simulations.md; with ``--write``, replaces it there. Fixed seeds; takes a
minute.

    python benches/slices_rule.py [--repetitions 20000] [--write docs/simulations.md]
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import main
from benches.stopping_data import Floats
from benches.stopping_rule import covers, interval, percent

from fslab.stats.interim_looks import Looks
from fslab.units import listed

SLICES = 24  # of each stack in a round
FIXED = (3, 6, 10)
BUDGETS = (5, 12)  # rounds; the first look is after three
BETWEEN = 0.05
SLICE_SD = 0.5  # of the logarithm of a slice's rate, beside four processes that compute
Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]
COMMAND = "benches/slices_rule.py"


def independent(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    noise: Floats = SLICE_SD * rng.standard_normal(shape)
    return noise


def bursts(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return noise in which everything takes three times as long, for 10 slices on average, after 40 on average."""
    busy = rng.random(shape[:-1]) < 10 / 50
    found = 0.2 * rng.standard_normal(shape)
    for slot in range(shape[-1]):
        found[..., slot] -= np.log(3) * busy
        busy ^= rng.random(shape[:-1]) < np.where(busy, 1 / 10, 1 / 40)
    return found


def drift(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return noise in a rate that falls by a third in each round."""
    noise: Floats = independent(rng, shape) - np.linspace(0, 0.4, shape[-1])
    return noise


def autocorrelated(rng: np.random.Generator, shape: tuple[int, ...], along: float) -> Floats:
    """Return noise in which each slice resembles the one before, of whichever stack."""
    found = independent(rng, shape)
    for slot in range(1, shape[-1]):
        found[..., slot] = along * found[..., slot - 1] + np.sqrt(1 - along**2) * found[..., slot]
    return found


def bimodal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return noise in which three slices of ten have half the rate."""
    noise: Floats = 0.1 * rng.standard_normal(shape) - np.log(2) * (rng.random(shape) < 0.3)
    return noise


NOISES: dict[str, Noise] = {
    "independent slices": independent,
    "bursts": bursts,
    "drift": drift,
    **{f"AR(1) {along}": partial(autocorrelated, along=along) for along in (0.5,)},
    "bimodal": bimodal,
}


def rounds(rng: np.random.Generator, noise: Noise, between: float, count: int, most: int) -> Floats:
    """Return the logarithms of the ratios of ``count`` campaigns of ``most`` rounds; the true ratio is 1 on average.

    ``between``: the standard deviation of the true logarithm from round to round.
    """
    rates = np.exp(noise(rng, (count, most, 2 * SLICES)))
    # A B B A or B A A B: as ``campaign.time_slices`` draws them.
    first = rng.random((count, most, SLICES // 2)) < 0.5
    is_a = np.stack([first, ~first, ~first, first], axis=-1).reshape(rates.shape)
    ratio = np.log((rates * is_a).sum(axis=-1) / (rates * ~is_a).sum(axis=-1))
    found: Floats = ratio + between * rng.standard_normal((count, most))
    return found


def covered_at_all_looks(ratios: Floats, most: int) -> str:
    looks, blocks, held = Looks(first=3, most=most), 0, np.ones(len(ratios), bool)
    while blocks < most:
        blocks = min(most, looks.next_after(blocks))
        held &= covers(interval(ratios[:, :blocks], looks.coverage_at(blocks)), 1.0)
    return percent(held)


def tables(repetitions: int) -> str:
    """Return the range of the shares of intervals, over all kinds of noise and numbers of rounds."""
    shares = []
    for name, noise in NOISES.items():
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        found = rounds(rng, noise, BETWEEN, repetitions, max(*FIXED, *BUDGETS))
        shares += [percent(covers(interval(found[:, :blocks], 0.95), 1.0)) for blocks in FIXED]
        shares += [covered_at_all_looks(found, most) for most in BUDGETS]
    fixed, budgets = (listed([*map(str, each)]) for each in (FIXED, BUDGETS))
    return (
        f"Made by `{COMMAND}`.\n\n{min(shares, key=float)} to {max(shares, key=float)} % of the intervals of two equal "
        f"stacks contain 1: {SLICES} slices of each in a round, rounds that differ by {100 * BETWEEN:g} %, after "
        f"{fixed} rounds or at all looks from 3 rounds to {budgets}; {repetitions:,} campaigns for each kind of noise: "
        f"{', '.join(NOISES)}."
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, "slices-rule", ("--repetitions", 20_000), tables))
