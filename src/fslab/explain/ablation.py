"""Selects the cells of an ablation, and describes what its trials show about the causes of a difference. Pure."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import log
from typing import Any

from fslab.cell import Cell, Frozen
from fslab.explain.attribution import Attribution, Off, Share, attribute
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import REGISTRY
from fslab.explain.switch import Switch, all_off
from fslab.units import counted

MOST_TOGETHER = 3  # mechanisms: 8 cells; with four there would be 16


class Ablation(Frozen):
    """The cells of an ablation: the slower cell, its variants with mechanisms off, and the faster cell.

    ``off`` maps the name of each measured set of mechanisms, such as ``copy-on-write+data-checksums``, to a cell id.
    ``switches``: each mechanism's switch, in words.
    """

    of: str
    workload: str
    slow: str
    fast: str
    slow_cell: str
    fast_cell: str
    metric: str
    higher_is_better: bool
    off: dict[str, str]
    switches: dict[str, str]


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
            found[name] = (mechanism.applies(fast), -weight, switch)
    kept: dict[str, Switch] = {}
    results = []
    for name, (_, _, switch) in sorted(found.items(), key=lambda item: item[1][:2]):
        # If two mechanisms have the same switch (direct-not-honoured, data-journalling), keep the stronger evidence.
        if (off := switch.off(slow.cell)) not in results or name in only:
            kept[name] = switch
            results.append(off)
    return kept


def cells(slow: Evidence, fast: Evidence, switches: Mapping[str, Switch]) -> tuple[dict[str, Cell], bool]:
    """Return the slower cell with sets of mechanisms off, by their names joined with ``+``; whether these are all sets.

    Up to three mechanisms: all combinations. More: each alone (those with an effect are then measured together).
    """
    complete = len(switches) <= MOST_TOGETHER
    sizes = range(1, (len(switches) if complete else 1) + 1)
    found: dict[str, Cell] = {}
    for size in sizes:
        for chosen in combinations(switches, size):
            cell = all_off(slow.cell, [switches[name] for name in chosen])
            label = f"{slow.cell.stack.name} without {' and '.join(chosen)}"
            # Equal cells are one cell, measured once: nodatacow also switches checksums off, and a variant may be the
            # faster stack itself.
            alike = next((each for each in (fast.cell, *found.values()) if _alike(each, cell)), None)
            named = cell.model_copy(update={"stack": cell.stack.model_copy(update={"name": label})})
            found["+".join(chosen)] = alike or named
    return found, complete


def matter(found: Attribution) -> list[str]:
    """Return the mechanisms that have an effect alone, the strongest first, as many as can be measured together."""
    effective = [name for name, share in found.alone.items() if share.nothing is False]
    return sorted(effective, key=lambda name: -abs(found.alone[name].factor - 1))[:MOST_TOGETHER]


def values_of(
    ablation: Ablation, by_cell: Mapping[str, Mapping[int, float]]
) -> tuple[dict[Off, Mapping[int, float]], Mapping[int, float]]:
    """Return the arguments of :func:`attribute` from values by cell and block, with larger values better."""
    flip = 1 if ablation.higher_is_better else -1
    sound = {
        cell: {block: value**flip for block, value in values.items() if value > 0}
        for cell, values in by_cell.items()
    }
    slow: dict[Off, Mapping[int, float]] = {frozenset(): sound.get(ablation.slow_cell, {})}
    for names, cell in ablation.off.items():
        slow[frozenset(names.split("+"))] = sound.get(cell, {})
    return slow, sound.get(ablation.fast_cell, {})


def attributed(
    ablation: Ablation, by_cell: Mapping[str, Mapping[int, float]], coverage: float
) -> Attribution | None:
    """Return the attribution from the trials of an ablation. Mechanisms without a usable trial are left out.

    None if one of the two stacks has no usable trial, or if no block has trials of all cells.
    """
    slow, fast = values_of(ablation, by_cell)
    unmeasured = {name for off, values in slow.items() if not values for name in off if len(off) == 1}
    kept = {off: values for off, values in slow.items() if values and not off & unmeasured}
    return attribute(kept, fast, coverage=coverage) if kept.get(frozenset()) and fast else None


def in_words(ablation: Ablation, found: Attribution) -> list[str]:
    """Return sentences: the difference, its causes, then what is not a cause, and what remains unexplained."""
    blocks = f"{ablation.metric}, {counted(found.ratio.n, 'block')}"
    fast, slow, factor = ablation.fast, ablation.slow, _factor(found.ratio)
    gap = found.ratio.factor > 1 and not found.ratio.nothing
    if found.ratio.nothing:
        better = f"{fast} and {slow} are indistinguishable in these trials: a factor of {factor}"
    elif found.ratio.factor >= 1:
        better = f"{fast} is better than {slow} by a factor of {factor}"
    else:
        better = f"{fast} is not better than {slow} in these trials: a factor of {factor}"
    lines = [f"{ablation.workload}: {better} ({blocks})."]
    ordered = sorted(found.shares, key=lambda name: -found.shares[name].factor)
    causes = [
        name for name in ordered if found.shares[name].nothing is False and found.shares[name].factor > 1
    ]
    if causes and gap:
        lines.append(
            f"{ablation.slow} is slower because of {', '.join(REGISTRY.get(name).cause for name in causes)}."
        )
    how = "on average over all orders of switching off" if found.complete and len(ordered) > 1 else "alone"
    for name in ordered:
        share, alone = found.shares[name], found.alone[name]
        cause = REGISTRY.get(name).cause
        if share.nothing and alone.nothing is not False:
            verdict = (
                "not the cause" if _negligible(share, found.ratio) else "inconclusive: more trials are needed"
            )
            lines.append(
                f"  {cause}: {verdict}; switching it off ({ablation.switches[name]}) changes the figure by a factor of "
                f"{_factor(share)}"
            )
        elif share.nothing is None:
            lines.append(f"  {cause}: a factor of {_factor(share)}; too few blocks for an interval")
        else:
            what = _effect(share, slow, gap=gap)
            lines.append(
                f"  Switching {cause} off ({ablation.switches[name]}) {what} by a factor of {_factor(share)}, {how}"
                + (f"; alone by {_factor(alone)}" if how != "alone" else "")
            )
    lines.append(f"  A factor of {_factor(found.rest)} remains unexplained.")
    return lines


def as_document(ablation: Ablation, found: Attribution | None) -> dict[str, Any]:
    return {
        "ablation": ablation.model_dump(mode="json"),
        "attribution": found.model_dump(mode="json") if found else None,
        "words": in_words(ablation, found) if found else [],
    }


def _effect(share: Share, slow: str, *, gap: bool) -> str:
    """Return what switching off does: to the gap, or if there is none, to the stack itself."""
    if gap:
        return "narrows the gap" if share.factor >= 1 else "widens the gap"
    return f"makes {slow} {'faster' if share.factor >= 1 else 'slower'}"


def _negligible(share: Share, ratio: Share) -> bool:
    """Return whether the interval excludes every effect that matters: above a tenth and above a quarter of the gap."""
    if share.low is None or share.high is None:
        return False
    return max(abs(log(share.low)), abs(log(share.high))) <= max(log(1.1), abs(log(ratio.factor)) / 4)


def _factor(share: Share) -> str:
    interval = (
        f" ({share.low:.3g}–{share.high:.3g})" if share.low is not None and share.high is not None else ""
    )
    return f"{share.factor:.3g}{interval}"


def _alike(one: Cell, other: Cell) -> bool:
    return one.model_copy(update={"stack": one.stack.model_copy(update={"name": ""})}) == other.model_copy(
        update={"stack": other.stack.model_copy(update={"name": ""})}
    )
