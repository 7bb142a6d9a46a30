"""Finds facts of the machines that coincide with a difference between them. Never reports them as a cause. Pure."""

from collections.abc import Mapping
from math import exp, log
from statistics import fmean
from typing import Any

from fslab.analysis.fleet_model import FactSplit
from fslab.machine import facts
from fslab.stats.compare import compare_ratio, holm

GROUP_LEAST = 3
MANY = 50  # machines; the time for the exact distribution grows with the cube of their number
ALPHA = 0.05


def splits(ratios: Mapping[str, float], machines: Mapping[str, Mapping[str, Any]]) -> tuple[FactSplit, ...]:
    """Return divisions of the machines into two groups, of at least three each, whose ratios differ significantly.

    The test is the exact rank-sum test; from 50 machines on, its normal approximation. Facts that divide the machines
    in the same way are one division, because their effects cannot be separated. Holm's correction is over all
    divisions. With seven machines or fewer, no division can be significant at 5 %.
    """
    tried = _divisions(machines)
    adjusted = holm(
        [_p_value([ratios[name] for name in one], [ratios[name] for name in other]) for one, other in tried]
    )
    found = [
        FactSplit(facts=tuple(named), machines=groups, p_value=p_value, ratios=_means(groups, ratios))
        for (groups, named), p_value in zip(tried.items(), adjusted, strict=True)
        if p_value <= ALPHA
    ]
    return tuple(sorted(found, key=lambda split: split.p_value))


def _p_value(one: list[float], other: list[float]) -> float:
    if len(one) + len(other) >= MANY:
        from scipy.stats import mannwhitneyu  # noqa: PLC0415 - 0.5 s, which few commands need

        return float(mannwhitneyu(one, other, method="asymptotic").pvalue)
    found = compare_ratio(one, other).p_value
    return 1.0 if found is None else found


def _divisions(
    machines: Mapping[str, Mapping[str, Any]],
) -> dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]]:
    """Return the facts by the division that they make: facts with two values, each on at least three machines."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, fact in facts.CATALOGUE.items():
        if name == "hostname":
            continue
        groups: dict[str, list[str]] = {}
        for machine, known in machines.items():
            value = facts.canonical(fact, known)
            groups.setdefault("unknown" if value is None else str(value), []).append(machine)
        if len(groups) == 2 and "unknown" not in groups and min(map(len, groups.values())) >= GROUP_LEAST:
            (first, one), (second, other) = groups.items()
            found.setdefault((tuple(one), tuple(other)), []).append(f"{name}: {first} / {second}")
    return found


def _means(
    groups: tuple[tuple[str, ...], tuple[str, ...]], ratios: Mapping[str, float]
) -> tuple[float, float]:
    one, other = (exp(fmean(log(ratios[name]) for name in group)) for group in groups)
    return one, other
