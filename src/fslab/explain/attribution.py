"""Divides a ratio among the mechanisms that were switched off, one by one and together. Pure.

Shapley, "A value for n-person games", Contributions to the Theory of Games II (1953) 307: a share is the mean, over all
orders of switching off, of what the mechanism adds to the logarithm. It is computed in each block, so that drift
cancels. The intervals of the mechanisms are simultaneous (Bonferroni): with seven that do nothing, one would otherwise
seem to do something in 30 % of the ablations.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, exp, log

from fslab.cell import Frozen
from fslab.stats.student import mean_and_error, two_sided_quantile

LEAST_BLOCKS = 4

Off = frozenset[str]


class Share(Frozen):
    """A factor with its interval: exp of a mean of logarithms over ``n`` blocks, Student's t.

    ``low`` and ``high`` are None with fewer than four blocks.
    """

    factor: float
    low: float | None
    high: float | None
    n: int

    @property
    def nothing(self) -> bool | None:
        """Whether the factor is not shown to differ from 1; None without an interval."""
        return None if self.low is None or self.high is None else self.low <= 1 <= self.high


class Attribution(Frozen):
    """The division of a ratio. ``ratio`` is fast ÷ slow, so that factors above 1 close the gap.

    The product of ``shares`` and ``rest`` is exactly ``ratio``. ``alone``: the effect of each mechanism if only that
    one is switched off. ``complete``: all combinations were measured. Otherwise a share is the effect of the mechanism
    alone, and ``rest`` contains all interactions. ``costs``: the effects of switches that make another workload or
    volume, which are not shares.
    """

    ratio: Share
    shares: dict[str, Share]
    rest: Share
    alone: dict[str, Share]
    complete: bool
    costs: dict[str, Share] = {}


def attribute(
    slow: Mapping[Off, Mapping[int, float]], fast: Mapping[int, float], *, coverage: float = 0.95
) -> Attribution | None:
    """Return the attribution; None without a common block, or if a value is not positive.

    ``slow``: values by block for each set of mechanisms that was off (the empty set: the original). ``fast``: values of
    the other stack by block. Larger values are better. ``coverage``: of the interval of the ratio, and of those of all
    shares together.
    """
    names = sorted({name for off in slow for name in off})
    complete = all(frozenset(chosen) in slow for chosen in _subsets(names))
    used = [*_subsets(names)] if complete else [(), *((name,) for name in names)]
    sets = [frozenset(chosen) for chosen in used]
    blocks = sorted(set(fast).intersection(*(slow[off] for off in sets)))
    if not blocks or any(value <= 0 for values in (fast, *slow.values()) for value in values.values()):
        return None
    logs = [{off: log(slow[off][block]) for off in sets} for block in blocks]
    ends = [log(fast[block]) for block in blocks]
    shares = {
        name: [_shapley(values, name, names) if complete else _alone(values, name) for values in logs]
        for name in names
    }
    gaps = [end - values[frozenset()] for end, values in zip(ends, logs, strict=True)]
    rest = [gap - sum(shares[name][index] for name in names) for index, gap in enumerate(gaps)]
    each = 1 - (1 - coverage) / max(len(names), 1)
    return Attribution(
        ratio=_share(gaps, coverage),
        shares={name: _share(values, each) for name, values in shares.items()},
        rest=_share(rest, coverage),
        alone={name: _share([_alone(values, name) for values in logs], each) for name in names},
        complete=complete,
    )


def _alone(values: Mapping[Off, float], name: str) -> float:
    return values[frozenset({name})] - values[frozenset()]


def _shapley(values: Mapping[Off, float], name: str, names: Sequence[str]) -> float:
    others = [each for each in names if each != name]
    return sum(
        (values[frozenset(chosen) | {name}] - values[frozenset(chosen)])
        / (len(names) * comb(len(others), len(chosen)))
        for chosen in _subsets(others)
    )


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def _share(values: list[float], coverage: float) -> Share:
    mean, error = mean_and_error(values)
    if len(values) < LEAST_BLOCKS:
        return Share(factor=exp(mean), low=None, high=None, n=len(values))
    half = two_sided_quantile(1 - coverage, len(values) - 1) * error
    return Share(factor=exp(mean), low=exp(mean - half), high=exp(mean + half), n=len(values))
