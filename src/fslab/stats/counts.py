"""Compares counts of events, or their amounts, by their difference: some can be 0, and a ratio to 0 does not exist."""

from collections.abc import Mapping
from math import hypot, sqrt

from fslab.stats import Interval, Reason
from fslab.stats.distributions import mean_and_error, two_sided_quantile, two_sided_tail
from fslab.stats.estimate_model import (
    CORRELATED,
    PAIRS_LEAST,
    ComparisonMethod,
    Correlations,
    RatioEstimate,
    invalid_samples,
    is_correlation_known,
    no_ratio,
)
from fslab.stats.paired_differences import in_order
from fslab.stats.unpaired_differences import widening_of, widening_of_two


def compare_counts(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    coverage: float = 0.95,
    paired: bool = True,
    amounts: bool = False,
    common: Correlations = (None, None),
) -> RatioEstimate:
    """Return the difference a − b of the mean counts, in ``more``; if ``paired``, from the blocks that both have.

    Student's t interval of the differences (of independent samples: with the degrees of freedom of the smaller one).
    Their variance is taken as at least that of independent Poisson counts with these means, and as at least 1: a few
    counts that happen to be equal, such as 2 in three trials, do not show that the counts are free of chance. So the
    interval is wider than necessary if they really are. Counts that are all 0 show nothing about how events cluster,
    and therefore nothing about a mean: they have no interval (``NO_EVENTS``), but see :func:`share_limit`. ``amounts``:
    the values are no counts, but what events took, such as seconds: one event is taken as the mean of the values that
    are not 0, so that the units do not matter. ``needed`` is 3, as for ratios. Values that are negative or not finite
    have no difference. The interval is wider if differences resemble the ones before; of independent samples, if their
    values do, as they or other cells of both sides (``common``) show.
    """
    problem = invalid_samples([*a.values()], [*b.values()])
    if problem not in {None, Reason.NOT_POSITIVE} or min([*a.values(), *b.values()], default=-1) < 0:
        return no_ratio(len(a), len(b), problem or Reason.NOT_POSITIVE, PAIRS_LEAST, coverage)
    if paired:
        both = sorted(a.keys() & b.keys())
        a, b = ({block: each[block] for block in both} for each in (a, b))
    size = min(len(a), len(b))
    if size < PAIRS_LEAST:
        return no_ratio(len(a), len(b), Reason.TOO_FEW_SAMPLES, PAIRS_LEAST, coverage)
    if not any((*a.values(), *b.values())):
        return no_ratio(len(a), len(b), Reason.NO_EVENTS, PAIRS_LEAST, coverage)
    (mean_a, error_a), (mean_b, error_b) = (mean_and_error([*each.values()]) for each in (a, b))
    differences = [a[block] - b[block] for block in a] if paired else []
    factor = widening_of((*differences,)) if paired else widening_of_two(in_order(a), in_order(b), common)
    known = is_correlation_known(size, *((None,) if paired else common))
    spread = mean_and_error(differences)[1] if paired else hypot(error_a, error_b)
    difference = mean_a - mean_b
    seen = [value for value in (*a.values(), *b.values()) if value]
    event = sum(seen) / len(seen) if amounts else 1.0
    error = max(spread, event * sqrt(max((mean_a / len(a) + mean_b / len(b)) / event, 1 / size)))
    half = factor * error * two_sided_quantile(1 - coverage, size - 1)
    p_value, p_if_correlated = (
        two_sided_tail(difference / error / widening, size - 1)
        for widening in (factor, max(factor, CORRELATED))
    )
    return RatioEstimate(
        n_a=len(a), n_b=len(b), ratio=None, interval=None, p_value=p_value, reason=None, needed=PAIRS_LEAST,
        method=ComparisonMethod.COUNTS, coverage=coverage, more=difference, widening=factor,
        more_interval=Interval(low=difference - half, high=difference + half, coverage=coverage),
        correlation_known=known, p_if_correlated=None if known else p_if_correlated,
    )  # fmt: skip


def share_limit(trials: int, *, coverage: float = 0.95) -> float:
    """Return the upper limit of the share of trials with an event if none of ``trials`` independent ones had any.

    One-sided, by Clopper & Pearson (Biometrika 26 (1934) 404). It needs no assumption on how many events come together.
    """
    return 1 - float((1 - coverage) ** (1 / trials))
