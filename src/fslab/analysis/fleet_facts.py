"""Finds facts of the machines that coincide with a difference between them. Never reports them as a cause. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Any

from fslab.analysis.fleet_model import FactSplit
from fslab.answers.question import Question, answer, false_discoveries
from fslab.machine import differences, facts

GROUP_LEAST = 3
MANY = 50  # machines; the time for the exact distribution grows with the cube of their number
ALPHA = 0.05

_Groups = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFacts:
    """One row of a fleet's results: the ratio of each machine, and its facts by name. Facts of devices are texts."""

    ratios: Mapping[str, float]
    machines: Mapping[str, Mapping[str, Any]]


def splits(rows: Sequence[RowFacts]) -> list[tuple[FactSplit, ...]]:
    """Return for each row the divisions of the machines into two groups whose ratios differ significantly.

    A group has at least three machines. The test is the exact rank-sum test; from 50 machines on, its normal
    approximation. Facts that divide the machines in the same way are one division, because their effects cannot be
    separated. Of all divisions that are returned, over all rows, at most 5 % are expected to differ by chance
    (Benjamini & Hochberg). With seven machines or fewer, none can be significant.
    """
    tried = [
        (number, groups, named)
        for number, row in enumerate(rows)
        for groups, named in _divisions(row.machines).items()
    ]
    adjusted = false_discoveries([_p_value(rows[number].ratios, groups) for number, groups, _ in tried])
    found: list[list[FactSplit]] = [[] for _ in rows]
    for (number, groups, named), p_value in zip(tried, adjusted, strict=True):
        if p_value <= ALPHA:
            means = _means(groups, rows[number].ratios)
            found[number].append(
                FactSplit(facts=tuple(named), machines=groups, p_value=p_value, ratios=means)
            )
    return [tuple(sorted(each, key=lambda split: split.p_value)) for each in found]


def _p_value(ratios: Mapping[str, float], groups: _Groups) -> float:
    one, other = ([ratios[name] for name in group] for group in groups)
    if len(one) + len(other) >= MANY:
        from scipy.stats import mannwhitneyu  # noqa: PLC0415 - 0.5 s, which few commands need

        return float(mannwhitneyu(one, other, method="asymptotic").pvalue)
    question = Question(over=dict(enumerate(one)), under=dict(enumerate(other)), paired=False)
    (found,) = answer([question])
    return 1.0 if found.p_value is None else found.p_value


def _divisions(machines: Mapping[str, Mapping[str, Any]]) -> dict[_Groups, list[str]]:
    """Return the facts by the division that they make: facts with two values, each on at least three machines."""
    found: dict[_Groups, list[str]] = {}
    names = dict.fromkeys(name for known in machines.values() for name in known)
    for name in names:
        fact = facts.CATALOGUE.get(name)
        if name == "hostname" or (fact is None and not name.startswith(differences.DEVICE)):
            continue
        groups: dict[str, list[str]] = {}
        for machine, known in machines.items():
            value = known.get(name) if fact is None else facts.canonical(fact, known)
            groups.setdefault("unknown" if value is None else str(value), []).append(machine)
        if len(groups) == 2 and "unknown" not in groups and min(map(len, groups.values())) >= GROUP_LEAST:
            (first, one), (second, other) = groups.items()
            found.setdefault((tuple(one), tuple(other)), []).append(f"{name}: {first} / {second}")
    return found


def _means(groups: _Groups, ratios: Mapping[str, float]) -> tuple[float, float]:
    one, other = (exp(fmean(log(ratios[name]) for name in group)) for group in groups)
    return one, other
