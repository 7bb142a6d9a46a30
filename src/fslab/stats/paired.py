"""Two samples paired by block: how many times larger one is than the other, free of what drifts.

Trials of one block were made close together, so that their quotient is free of what changes from block to
block. Pure functions; they must not know what the numbers mean, nor which way is better.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, log

from fslab.stats.compare import ComparisonMethod, RatioEstimate, compare_ratio, invalid_samples, no_ratio
from fslab.stats.interval import Interval
from fslab.stats.noise_prior import NoisePrior
from fslab.stats.signed_rank import signed_rank_cut

# Simulated at 95 % with the shapes of benches/stopping_data.py, CoV 5 %: three pairs cover 95.3–97.1 %, as four
# (94.8–97.9 %) and five do; autocorrelated trials are no better with more.
PAIRS_LEAST = 3
# With fewer Walsh averages cut off at each end, the exact interval is wider than it need be: simulated at
# 98.65 %, 27 % wider than t's for 8 normal differences (cut 1), 11 % for 10 (cut 4), 1 % for 14 (cut 14).
CUT_LEAST = 8


def compare_blocks(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    coverage: float = 0.95,
    prior: NoisePrior | None = None,
) -> RatioEstimate:
    """The ratio a/b of values by block, from the blocks that both have.

    - From 10 blocks (at 95 %; 12 or more at the levels that repeated looks take): the signed-rank interval on the
      differences of logarithms, or, where these are not symmetric, one that holds for the geometric mean of the
      quotients all the same (:func:`fslab.stats.differences.locate`).
    - From 3 blocks: Student's t interval on them, moderated by the noise of other cells where ``prior`` is given
      (:mod:`fslab.stats.moderation`). Signed ranks cannot give 95 % below 6 blocks, nor 98.5 % below 8. Differences
      of two like-shaped samples are symmetric, where t covers at least what it says when tails are heavy (Efron,
      JASA 64 (1969) 1278). Not where most differences are equal (a metric too coarse for the noise): their spread
      says nothing.
    - With fewer blocks in common: the unpaired rank-sum interval of all values (:func:`compare_ratio`).

    Where each difference resembles the one before, the interval is wider (``widening``); below 20 blocks that cannot
    be known (``rests_on_independence``). ``method`` says which it was. ``needed`` is the number of common blocks that
    an interval takes.
    """
    problem = invalid_samples([*a.values()], [*b.values()])
    if problem is not None:
        return no_ratio(len(a), len(b), problem, PAIRS_LEAST, coverage)
    differences = [log(a[block]) - log(b[block]) for block in sorted(a.keys() & b.keys())]
    tied = mostly_equal(differences)
    if takes_ranks(len(differences), coverage) or (tied and signed_rank_cut(len(differences), coverage) > 0):
        return _located(differences, coverage, ranks=True)
    if len(differences) >= PAIRS_LEAST and not tied:
        return _located(differences, coverage, ranks=False, prior=prior)
    unpaired = compare_ratio([*a.values()], [*b.values()], coverage=coverage)
    needed = _signed_rank_needs(coverage) if tied else PAIRS_LEAST
    return dataclasses.replace(unpaired, needed=min(needed, unpaired.needed) if tied else needed)


def takes_ranks(count: int, coverage: float) -> bool:
    """Whether so many blocks are enough for signed ranks to be no wider than they need be."""
    return signed_rank_cut(count, coverage) >= CUT_LEAST


def _located(
    differences: Sequence[float], coverage: float, *, ranks: bool, prior: NoisePrior | None = None
) -> RatioEstimate:
    import numpy as np  # with scipy 0.3 s, which most commands can do without

    from fslab.stats.differences import locate, p_values

    sample = np.array([differences])
    found = locate(sample, coverage, ranks=ranks, prior=prior)
    borrowed = float(found.freedom[0]) - (len(differences) - 1)
    plain = ComparisonMethod.MODERATED_T if borrowed > 0 else ComparisonMethod.PAIRED_T
    method = ComparisonMethod.SIGNED_RANK if ranks else plain
    return RatioEstimate(
        n_a=len(differences), n_b=len(differences), ratio=exp(found.center[0]),
        interval=Interval(low=exp(found.low[0]), high=exp(found.high[0]), coverage=found.coverage),
        p_value=float(p_values(sample, found, ranks=ranks)[0]), reason=None, needed=PAIRS_LEAST,
        method=ComparisonMethod.ASYMMETRIC if found.asymmetric[0] else method, coverage=coverage,
        widening=float(found.widening[0]), borrowed=borrowed,
    )  # fmt: skip


def mostly_equal(differences: Sequence[float]) -> bool:
    """Whether more than half are one and the same value, but for rounding; a single one says nothing."""
    if len(differences) < 2:
        return False
    rounded = [round(value, 12) for value in differences]
    if len(set(rounded)) == len(rounded):
        return False
    return 2 * max(Counter(rounded).values()) > len(rounded)


def _signed_rank_needs(coverage: float) -> int:
    size = 1
    while signed_rank_cut(size, coverage) == 0:
        size += 1
    return size
