"""Selects the cells of an ablation, and divides the difference among mechanisms. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from fslab.cell import Cell
from fslab.explain.attribution import Attribution, Off, attribute
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import REGISTRY
from fslab.explain.switch import Switch, all_off
from fslab.store.campaign import Ablation

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

    Up to three mechanisms: all combinations. More: each alone (those with an effect are then measured together). A
    switch that makes another workload or volume is measured alone.
    """
    dividing = [name for name in switches if not REGISTRY.get(name).alters]
    complete = len(dividing) <= MOST_TOGETHER
    sizes = range(1, (len(dividing) if complete else 1) + 1)
    sets = [chosen for size in sizes for chosen in combinations(dividing, size)]
    found: dict[str, Cell] = {}
    for chosen in (*sets, *((name,) for name in switches if name not in dividing)):
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
    if not original or not fast:
        return None
    altering = {name for off in kept for name in off if REGISTRY.get(name).alters}
    each = 1 - (1 - coverage) / max(len(altering), 1)
    divided = {off: values for off, values in kept.items() if not off & altering}
    found = attribute(divided, fast, coverage=coverage)
    costs = {}
    for name in sorted(altering):
        off = frozenset({name})
        alone = attribute({frozenset(): original, off: kept[off]}, fast, coverage=each)
        if alone is not None:
            costs[name] = alone.alone[name]
    return None if found is None else found.model_copy(update={"costs": costs})


def _alike(one: Cell, other: Cell) -> bool:
    return one.model_copy(update={"stack": one.stack.model_copy(update={"name": ""})}) == other.model_copy(
        update={"stack": other.stack.model_copy(update={"name": ""})}
    )
