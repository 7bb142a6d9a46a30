"""Explanations: the evidence on causes in each cell of a campaign, and the explanations with the most weight."""

from collections.abc import Sequence
from shlex import quote
from typing import Any

from fslab.cell import Frozen
from fslab.claims.model import Verdicts
from fslab.claims.replication import Reason, deciding
from fslab.errors import UsageError, nearest
from fslab.explain import statements
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import REGISTRY as MECHANISMS
from fslab.explain.statement_model import Explanation
from fslab.store.campaign import Campaign
from fslab.store.store import Store

NOTABLE = 1.0


def evidence_of(campaign: Campaign, store: Store) -> list[Evidence]:
    """Return the cells of a campaign with their evidence."""

    return statements.evidence_of(campaign.cells, store.trials(campaign.id), store.traced(campaign.id))


def chosen(everything: list[Evidence], workload: str | None, a: str | None, b: str | None) -> list[Evidence]:
    """Select cells by workload and stacks ``a`` and ``b``; with only ``a``, it comes first and the other cells follow.

    Raises UsageError if nothing matches, or several stacks match one name.
    """
    if workload is not None:
        names = {seen.workload for seen in everything}
        if workload not in names:
            raise UsageError(f"no workload '{workload}' with a usable trial", hint=nearest(workload, names))
        everything = [seen for seen in everything if seen.workload == workload]
    if a is None:
        return everything
    one = _stack(everything, a)
    if b is not None:
        return [one, _stack(everything, b)]
    others = [seen for seen in everything if seen is not one]
    return [one, *others]


def _stack(everything: list[Evidence], wanted: str) -> Evidence:
    exact = [seen for seen in everything if wanted in {seen.stack, seen.cell.stack.name, seen.cell.id}]
    own = [seen for seen in everything if wanted == seen.filesystem or wanted in seen.stack.split()]
    found = exact or own
    if len(found) != 1:
        what = f"'{wanted}' matches {len(found)} stacks" if found else f"no stack '{wanted}'"
        raise UsageError(what, hint=f"known: {', '.join(quote(seen.stack) for seen in everything)}")
    return found[0]


def notable(everything: Sequence[Evidence]) -> list[Explanation]:
    """Return for each mechanism and workload the explanation with the most weight, if it is above ``NOTABLE``."""

    best: dict[tuple[str, str], Explanation] = {}
    for each in statements.all_statements(everything):
        key = (each.mechanism, each.workload)
        if each.weight > NOTABLE and (key not in best or best[key].weight < each.weight):
            best[key] = each
    return sorted(best.values(), key=lambda statement: -statement.weight)


def of_claims(verdicts: Verdicts, everything: Sequence[Evidence]) -> tuple[Reason, ...]:
    """Return at most three explanations for failed claims, those with the largest deviation first.

    For each claim: the mechanism with the most weight in a cell that the deciding part of the claim compares. Omits
    duplicates.
    """
    found: dict[tuple[str, str], Reason] = {}
    known = notable(everything)
    for claim, part in deciding(verdicts):
        compared = set(part.what.split())
        fitting = (one for one in known if one.workload == part.where and compared & set(one.stack.split()))
        if (one := next(fitting, None)) is not None:
            reason = Reason(
                claim=claim, where=f"{one.workload} on {one.stack}", text=one.text, certainty=one.certainty,
                refuted_by=one.refuted_by,
            )  # fmt: skip
            found.setdefault((one.mechanism, one.workload), reason)
    return tuple(found.values())[:3]


def as_document(everything: Sequence[Evidence]) -> list[dict[str, Any]]:
    return [statement.model_dump(mode="json") for statement in statements.all_statements(everything)]


def withdrawn(seen: Evidence) -> tuple[str, ...]:
    """Return why figures of a cell's trace are not used; empty if all are, or if there is no trace."""
    if seen.traced is None:
        return ()
    observed = seen.traced.provenance.observed
    return (*observed.get("trace_withdrawn", ()), *observed.get("trace_absent", ()))


def traces_not_used(everything: Sequence[Evidence]) -> list[dict[str, Any]]:
    """Return the cells with figures of traces that are not used, each with the reasons."""
    found = [(seen, withdrawn(seen)) for seen in everything]
    return [
        {"workload": seen.workload, "stack": seen.stack, "reasons": list(why)} for seen, why in found if why
    ]


class RankedMechanism(Frozen):
    """A mechanism. ``cells``: where it was found.

    ``contrast``: the largest difference in weight between two stacks under one workload. A mechanism that all stacks
    have alike explains no difference between them. ``strongest``: the strongest explanation under that workload, with
    its ``weight``.
    """

    mechanism: str
    summary: str
    weight: float
    contrast: float
    cells: tuple[str, ...]
    strongest: Explanation


def ranking(everything: Sequence[Evidence]) -> list[RankedMechanism]:
    """Return the mechanisms found: first the one in whose evidence the stacks differ most, then the strongest."""
    found: dict[str, list[Explanation]] = {}
    for each in statements.all_statements(everything):
        found.setdefault(each.mechanism, []).append(each)
    ranked = [_ranked(name, each_of, everything) for name, each_of in found.items()]
    return sorted(ranked, key=lambda each: (-each.contrast, -each.weight, -len(each.cells), each.mechanism))


def _ranked(name: str, found: Sequence[Explanation], everything: Sequence[Evidence]) -> RankedMechanism:
    contrasts = {
        workload: _contrast(workload, found, everything) for workload in {each.workload for each in found}
    }
    most = max(contrasts.values())
    strongest = max(
        (each for each in found if contrasts[each.workload] == most), key=lambda each: each.weight
    )
    return RankedMechanism(
        mechanism=name, summary=MECHANISMS.get(name).summary, weight=strongest.weight, contrast=most,
        cells=tuple(dict.fromkeys(f"{each.workload} on {each.stack}" for each in found)), strongest=strongest,
    )  # fmt: skip


def _contrast(workload: str, found: Sequence[Explanation], everything: Sequence[Evidence]) -> float:
    """Return the largest difference in weight between two stacks; one without an explanation has weight 0."""
    weights = {seen.stack: 0.0 for seen in everything if seen.workload == workload}
    alone = len(weights) < 2
    for each in found:
        if each.workload == workload:
            weights[each.stack] = max(each.weight, weights.get(each.stack, 0.0))
    return max(weights.values()) - (0.0 if alone else min(weights.values()))
