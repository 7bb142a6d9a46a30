"""Selects the cells of an ablation, divides the difference among mechanisms, and words the result. Pure.

Shapley, "A value for n-person games", Contributions to the Theory of Games II (1953) 307: a share is the mean, over all
orders of switching off, of what the mechanism adds to the logarithm. It is computed in each block, so that drift
cancels. The intervals of the mechanisms are simultaneous (Bonferroni): with seven that do nothing, one would otherwise
seem to do something in 30 % of the ablations.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, exp, log
from typing import Any

from fslab.cell import Cell, Frozen
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import NOTICEABLE, REGISTRY, Switch, all_off
from fslab.stats.distributions import mean_and_error, two_sided_quantile
from fslab.store.campaign import Ablation
from fslab.units import counted

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

    The product of ``rest`` and the ``shares`` of mechanisms that only the slower stack has is exactly ``ratio``: what
    the others cost, the faster stack pays, too, and their shares are their effects alone. ``alone``: the effect of each
    mechanism if only that one is switched off. ``complete``: all combinations of what only the slower stack has were
    measured. Otherwise a share is the effect of the mechanism alone, and ``rest`` contains all interactions. ``costs``:
    the effects of switches that make another workload or volume, which are not shares.
    """

    ratio: Share
    shares: dict[str, Share]
    rest: Share
    alone: dict[str, Share]
    complete: bool
    costs: dict[str, Share] = {}


def attribute(
    slow: Mapping[Off, Mapping[int, float]],
    fast: Mapping[int, float],
    *,
    coverage: float = 0.95,
    common: Collection[str] = (),
) -> Attribution | None:
    """Return the attribution; None without a common block, or if a value is not positive.

    ``slow``: values by block for each set of mechanisms that was off (the empty set: the original). ``fast``: values of
    the other stack by block. Larger values are better. ``coverage``: of the interval of the ratio, and of those of all
    shares together. ``common``: mechanisms that the other stack has too: in both stacks they are on, so no share is
    computed with one of them off.
    """
    names = sorted({name for off in slow for name in off})
    dividing = [name for name in names if name not in common]
    complete = all(frozenset(chosen) in slow for chosen in _subsets(dividing))
    used = {*(_subsets(dividing) if complete else [()]), *((name,) for name in names)}
    sets = [frozenset(chosen) for chosen in used]
    blocks = sorted(set(fast).intersection(*(slow[off] for off in sets)))
    if not blocks or any(value <= 0 for values in (fast, *slow.values()) for value in values.values()):
        return None
    logs = [{off: log(slow[off][block]) for off in sets} for block in blocks]
    ends = [log(fast[block]) for block in blocks]
    shares = {
        name: [
            _shapley(values, name, dividing) if complete and name in dividing else _alone(values, name)
            for values in logs
        ]
        for name in names
    }
    gaps = [end - values[frozenset()] for end, values in zip(ends, logs, strict=True)]
    rest = [gap - sum(shares[name][index] for name in dividing) for index, gap in enumerate(gaps)]
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


MOST_TOGETHER = 3  # mechanisms: 8 cells; with four there would be 16


def candidates(slow: Evidence, fast: Evidence, only: Sequence[str] = ()) -> dict[str, Switch]:
    """Return the mechanisms of the slower stack that can be switched off without changing the question.

    Those with the strongest evidence come first. Those that the faster stack also has come last, because they explain
    the least. ``only``: use only these mechanisms, even if they change the question.
    """
    found = {}
    for name, mechanism in REGISTRY:
        if (only and name not in only) or (mechanism.alters and not only) or not mechanism.applies(slow):
            continue
        switch = mechanism.switch(slow)
        if switch is not None and switch.off(slow.cell) is not None:
            weight = max((each.weight for each in mechanism.state(slow)), default=-1.0)
            found[name] = (mechanism.present(fast), -weight, switch)
    kept: dict[str, Switch] = {}
    results = []
    for name, (_, _, switch) in sorted(found.items(), key=lambda item: item[1][:2]):
        # If two mechanisms have the same switch (direct-not-honoured, data-journalling), keep the stronger evidence.
        if (off := switch.off(slow.cell)) not in results or name in only:
            kept[name] = switch
            results.append(off)
    return kept


def common(switches: Iterable[str], fast: Evidence) -> tuple[str, ...]:
    """Return the mechanisms that the faster stack has too: that one of them costs time does not explain the gap."""
    return tuple(name for name in switches if REGISTRY.get(name).present(fast))


def cells(slow: Evidence, fast: Evidence, switches: Mapping[str, Switch]) -> tuple[dict[str, Cell], bool]:
    """Return the slower cell with sets of mechanisms off, by their names joined with ``+``; whether these are all sets.

    Up to three mechanisms: all combinations. More: each alone (those with an effect are then measured together). Alone
    are also measured a mechanism that the faster stack has, too, and a switch that makes another workload or volume.
    """
    both = common(switches, fast)
    dividing = [name for name in switches if name not in both and not REGISTRY.get(name).alters]
    complete = len(dividing) <= MOST_TOGETHER
    sizes = range(1, (len(dividing) if complete else 1) + 1)
    sets = [chosen for size in sizes for chosen in combinations(dividing, size)]
    found: dict[str, Cell] = {}
    for chosen in (*sets, *((name,) for name in switches if name not in dividing)):
        cell = all_off(slow.cell, [switches[name] for name in chosen])
        label = f"{slow.cell.stack.name} without {' and '.join(chosen)}"
        # Equal cells are one cell, measured once: nodatacow also switches checksums off, and a variant may be the
        # faster stack itself.
        known = (fast.cell, *found.values())
        alike = next((each for each in known if _named(each, "") == _named(cell, "")), None)
        found["+".join(chosen)] = alike or _named(cell, label)
    return found, complete


def matter(ablation: Ablation, found: Attribution) -> list[str]:
    """Return the mechanisms of only the slower stack that have an effect alone, the strongest first, as many as can be
    measured together."""
    effective = [
        name for name, share in found.alone.items() if share.nothing is False and name not in ablation.common
    ]
    return sorted(effective, key=lambda name: -abs(log(found.alone[name].factor)))[:MOST_TOGETHER]


def values_of(
    ablation: Ablation, by_cell: Mapping[str, Mapping[int, float]]
) -> tuple[dict[Off, Mapping[int, float]], Mapping[int, float]]:
    """Return the arguments of :func:`attribute` from values by cell and block, with larger values better."""
    flip = 1 if ablation.higher_is_better else -1
    usable = {
        cell: {block: value**flip for block, value in values.items() if value > 0}
        for cell, values in by_cell.items()
    }
    slow: dict[Off, Mapping[int, float]] = {frozenset(): usable.get(ablation.slow_cell, {})}
    for names, cell in ablation.off.items():
        slow[frozenset(names.split("+"))] = usable.get(cell, {})
    return slow, usable.get(ablation.fast_cell, {})


def attributed(
    ablation: Ablation, by_cell: Mapping[str, Mapping[int, float]], coverage: float
) -> Attribution | None:
    """Return the attribution from the trials of an ablation. Mechanisms without a usable trial are left out.

    None if one of the two stacks has no usable trial, or if no block has trials of all cells.
    """
    slow, fast = values_of(ablation, by_cell)
    unmeasured = {name for off, values in slow.items() if not values for name in off if len(off) == 1}
    kept = {off: values for off, values in slow.items() if values and not off & unmeasured}
    original = kept.get(frozenset())
    if original is None:
        return None
    altering = {name for off in kept for name in off if REGISTRY.get(name).alters}
    each = 1 - (1 - coverage) / max(len(altering), 1)
    divided = {off: values for off, values in kept.items() if not off & altering}
    found = attribute(divided, fast, coverage=coverage, common=ablation.common)
    costs = {}
    for name in sorted(altering):
        off = frozenset({name})
        alone = attribute({frozenset(): original, off: kept[off]}, fast, coverage=each)
        if alone is not None:
            costs[name] = alone.alone[name]
    return None if found is None else found.model_copy(update={"costs": costs})


def _named(cell: Cell, name: str) -> Cell:
    return cell.model_copy(update={"stack": cell.stack.model_copy(update={"name": name})})


def in_words(ablation: Ablation, found: Attribution) -> list[str]:
    """Return sentences: the difference, its causes, then what is not a cause, and what remains unexplained."""
    blocks = f"{ablation.metric}, {counted(found.ratio.n, 'block')}"
    gap = found.ratio.factor > 1 and found.ratio.nothing is False
    lines = [f"{ablation.workload}: {_difference(ablation, found.ratio)} ({blocks})."]
    ordered = sorted(found.shares, key=lambda name: -found.shares[name].factor)
    causes = [
        name
        for name, share in ((name, found.shares[name]) for name in ordered if name not in ablation.common)
        if share.nothing is False and share.factor > 1 and not _is_negligible(share, found.ratio)
    ]
    if causes and gap:
        lines.append(
            f"{ablation.slow} is slower because of {', '.join(REGISTRY.get(name).cause for name in causes)}."
        )
    lines += [f"  {_of_share(ablation, found, name, gap=gap)}" for name in ordered]
    lines += [f"  {line}" for line in _of_costs(ablation, found)]
    lines.append(f"  A factor of {_factor(found.rest)} remains unexplained.")
    return lines


def as_document(ablation: Ablation, found: Attribution | None) -> dict[str, Any]:
    return {
        "ablation": ablation.model_dump(mode="json"),
        "attribution": found.model_dump(mode="json") if found else None,
        "words": in_words(ablation, found) if found else [],
    }


def _difference(ablation: Ablation, ratio: Share) -> str:
    fast, slow, factor = ablation.fast, ablation.slow, _factor(ratio)
    if ratio.nothing:
        return f"{fast} and {slow} do not differ clearly in these trials: a factor of {factor}"
    if ratio.factor <= 1:
        return f"{fast} is not better than {slow} in these trials: a factor of {factor}"
    if ratio.nothing is None:
        return f"{fast} measured better than {slow} by a factor of {factor}; too few blocks for an interval"
    return f"{fast} is better than {slow} by a factor of {factor}"


def _of_share(ablation: Ablation, found: Attribution, name: str, *, gap: bool) -> str:
    share, alone = found.shares[name], found.alone[name]
    cause, switch = REGISTRY.get(name).cause, ablation.switches[name]
    if share.nothing is None:
        return f"{cause}: a factor of {_factor(share)}; too few blocks for an interval"
    slight = _is_negligible(share, found.ratio)
    if (share.nothing and alone.nothing is not False) or (slight and _is_negligible(alone, found.ratio)):
        verdict = "not the cause" if slight else "open: more trials are needed"
        what = _effect(share, ablation.slow, gap=False)
        return f"{cause}: {verdict}; switching it off ({switch}) {what}"
    dividing = [each for each in found.shares if each not in ablation.common]
    together = found.complete and name in dividing and len(dividing) > 1
    how = "on average over all orders of switching off" if together else "alone"
    alone_too = f"; alone by {_factor(_as_said(alone, share))}" if how != "alone" else ""
    both = f". {ablation.fast} has it, too" if name in ablation.common else ""
    what = _effect(share, ablation.slow, gap=gap and not both)
    return f"Switching {cause} off ({switch}) {what}, {how}{alone_too}{both}"


def _of_costs(ablation: Ablation, found: Attribution) -> Iterator[str]:
    """Yield what switches cost that make another workload or volume: no share of the difference."""
    for name, cost in found.costs.items():
        yield (
            f"Switching {REGISTRY.get(name).cause} off ({ablation.switches[name]}) "
            f"{_effect(cost, ablation.slow, gap=False)}; that is another question, and "
            "no share of the difference"
        )


def _effect(share: Share, slow: str, *, gap: bool) -> str:
    """Return what switching off does, and by which factor: to the gap, or if there is none, to the stack itself."""
    way = ("narrows the gap", "widens the gap") if gap else (f"makes {slow} faster", f"makes {slow} slower")
    return f"{way[share.factor < 1]} by a factor of {_factor(_as_said(share, share))}"


def _as_said(share: Share, first: Share) -> Share:
    """Return the factor by which something is slower, if ``first``, which decides the words, is below 1."""
    if first.factor >= 1:
        return share
    low, high = (None if end is None else 1 / end for end in (share.high, share.low))
    return share.model_copy(update={"factor": 1 / share.factor, "low": low, "high": high})


def _is_negligible(share: Share, ratio: Share) -> bool:
    """Return whether the interval excludes effects above a tenth, and above a quarter of a difference that is shown."""
    if share.low is None or share.high is None:
        return False
    most = log(NOTICEABLE)
    if ratio.nothing is False:
        most = min(most, abs(log(ratio.factor)) / 4)
    return max(abs(log(share.low)), abs(log(share.high))) <= most


def _factor(share: Share) -> str:
    interval = (
        f" ({share.low:.3g}–{share.high:.3g})" if share.low is not None and share.high is not None else ""
    )
    return f"{share.factor:.3g}{interval}"
