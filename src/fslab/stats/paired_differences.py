"""Estimates the ratio of two samples that are paired by block, without the effect of drift.

Trials of one block run close together in time, so that changes from block to block cancel in their quotient.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import count
from math import exp, log

from fslab.stats import of_logarithms
from fslab.stats.distributions import signed_rank_cut
from fslab.stats.estimate_model import (
    CORRELATED,
    PAIRS_LEAST,
    ComparisonMethod,
    NoisePrior,
    RatioEstimate,
    invalid_samples,
    is_correlation_known,
    mostly_equal,
    no_ratio,
)
from fslab.stats.unpaired_differences import compare_ratio

# If fewer Walsh averages are cut off at each end, the exact interval is wider than necessary. Simulated at 98.65 % with
# normal differences, it is 27 % wider than t's for 8 differences (cut 1), 11 % for 10 (cut 4), 1 % for 14 (cut 14).
CUT_LEAST = 8


def compare_blocks(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    coverage: float = 0.95,
    prior: NoisePrior | None = None,
    among: int = 1,
) -> RatioEstimate:
    """Return the ratio a/b of values by block, from the blocks that both have.

    ``among``: the number of comparisons that are corrected together.

    - From 10 blocks on (at 95 %; 13 or more for many comparisons, or at the levels of repeated looks): the signed-rank
      interval of the differences of logarithms. If these are asymmetric, an interval that still holds for the
      geometric mean of the quotients (:func:`fslab.stats.difference_interval.locate`).
    - From 3 blocks on: Student's t interval of these differences, moderated by the noise of other cells if there is a
      ``prior`` (:mod:`fslab.stats.moderated_variance`). Signed ranks cannot give 95 % below 6, nor 98.5 % below 8.
      Differences of two samples with the same shape are symmetric, and then t covers at least the stated probability if
      tails are heavy (Efron, JASA 64 (1969) 1278). Not used if most differences are equal (a metric too coarse for the
      noise), because their spread is then meaningless; signed ranks are used instead as soon as they give the coverage.
    - With fewer common blocks: the unpaired interval of all values (:func:`compare_ratio`).

    If each difference resembles the one before, the interval is wider (``widening``); a ``prior`` also contains what
    other cells show of that. Below 20 blocks, and below 50 values of cells with at least 10, this cannot be estimated
    reliably (``rests_on_independence``). ``method``:
    the method that was used. ``needed``: the number of common blocks that an interval requires.
    """
    problem = invalid_samples([*a.values()], [*b.values()])
    if problem is not None:
        return no_ratio(len(a), len(b), problem, PAIRS_LEAST, coverage)
    differences = [log(a[block]) - log(b[block]) for block in sorted(a.keys() & b.keys())]
    tied = mostly_equal(differences)
    # At the level of the family: the smallest p-value of the ranks of 10 differences, 0.002, is too large for a family
    # of 28, and no difference could hold, however large.
    ranks = takes_ranks(len(differences), 1 - (1 - coverage) / among)
    ranks = ranks or (tied and signed_rank_cut(len(differences), coverage) > 0)
    if ranks or (len(differences) >= PAIRS_LEAST and not tied):
        return _located(differences, coverage, ranks=ranks, prior=prior)
    # What slows whole blocks does not cancel here: the values themselves show how much trials resemble the ones before.
    unpaired = compare_ratio(
        in_order(a), in_order(b), coverage=coverage, among=among,
        common=(None, None) if prior is None else prior.alone,
    )  # fmt: skip
    needed = PAIRS_LEAST
    if tied:
        needed = min(unpaired.needed, next(n for n in count(1) if signed_rank_cut(n, coverage) > 0))
    return dataclasses.replace(unpaired, needed=needed)


def in_order(values: Mapping[int, float]) -> list[float]:
    """Return values by block in the order of the blocks."""
    return [values[block] for block in sorted(values)]


def takes_ranks(blocks: int, coverage: float) -> bool:
    """Return whether so many blocks are enough for a signed-rank interval that is not wider than necessary."""
    return signed_rank_cut(blocks, coverage) >= CUT_LEAST


def _located(
    differences: Sequence[float], coverage: float, *, ranks: bool, prior: NoisePrior | None
) -> RatioEstimate:
    import numpy as np  # takes 0.3 s with scipy; most commands do not need it

    from fslab.stats.difference_interval import locate, p_values

    sample = np.array([differences])
    found = locate(sample, coverage, ranks=ranks, prior=prior)
    p_if_correlated = None
    known = is_correlation_known(len(differences), prior.correlation if prior is not None else None)
    if not known:
        wider = dataclasses.replace(found, widening=np.maximum(found.widening, CORRELATED))
        p_if_correlated = float(p_values(sample, wider, ranks=ranks)[0])
    borrowed = float(found.freedom[0]) - (len(differences) - 1)
    plain = ComparisonMethod.MODERATED_T if borrowed > 0 else ComparisonMethod.PAIRED_T
    method = ComparisonMethod.SIGNED_RANK if ranks else plain
    return RatioEstimate(
        n_a=len(differences), n_b=len(differences), ratio=exp(found.center[0]),
        interval=of_logarithms(found.low[0], found.high[0], coverage=found.coverage),
        p_value=float(p_values(sample, found, ranks=ranks)[0]), reason=None, needed=PAIRS_LEAST,
        method=ComparisonMethod.ASYMMETRIC if found.asymmetric[0] else method, coverage=coverage,
        widening=float(found.widening[0]), borrowed=borrowed, p_if_correlated=p_if_correlated,
        correlation_known=known,
    )  # fmt: skip
