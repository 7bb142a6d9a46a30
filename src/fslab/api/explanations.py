"""Explanations: the evidence on causes in each cell of a campaign, and what it says of failed claims."""

from collections.abc import Sequence
from shlex import quote
from typing import Any

from fslab.claims.model import Verdicts
from fslab.claims.replication import Reason, deciding
from fslab.errors import UsageError, nearest
from fslab.explain import evidence, mechanisms
from fslab.explain.evidence import Evidence
from fslab.explain.ranking import NOTABLE, ranking
from fslab.store.campaign import Campaign
from fslab.store.store import Store


def evidence_of(campaign: Campaign, store: Store) -> list[Evidence]:
    """Return the cells of a campaign with their evidence."""
    return evidence.evidence_of(campaign.cells, store.trials(campaign.id), store.traced(campaign.id))


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


_OF_SPREADS = {"spread", "of"}  # words of a part's name that are no names of stacks


def of_claims(verdicts: Verdicts, everything: Sequence[Evidence]) -> tuple[Reason, ...]:
    """Return at most three explanations for failed claims, those with the largest deviation first.

    For each claim: the first in the ranking of the cells that the deciding part of the claim compares, unless it cannot
    explain their difference. Omits duplicates.
    """
    found: dict[tuple[str, str], Reason] = {}
    for claim, part in deciding(verdicts):
        compared = [set(side.split()) - _OF_SPREADS for side in part.what.split(" / ")]
        cells = [
            seen
            for seen in everything
            if seen.workload == part.where and any(side <= set(seen.stack.split()) for side in compared)
        ]
        differ = (each.strongest for each in ranking(cells) if each.weight > NOTABLE and each.can_explain)
        if (one := next(differ, None)) is not None:
            reason = Reason(
                claim=claim, where=f"{one.workload} on {one.stack}", text=one.text, certainty=one.certainty,
                refuted_by=one.refuted_by,
            )  # fmt: skip
            found.setdefault((one.mechanism, one.workload), reason)
    return tuple(found.values())[:3]


def as_document(everything: Sequence[Evidence]) -> list[dict[str, Any]]:
    return [statement.model_dump(mode="json") for statement in mechanisms.all_statements(everything)]


def withdrawn(seen: Evidence) -> tuple[str, ...]:
    """Return why figures of a cell's trace are not used; empty if all are, or if there is no trace."""
    if seen.traced is None:
        return ()
    observed = seen.traced.provenance.observed
    return (*observed.get("trace_withdrawn", ()), *observed.get("trace_absent", ()))


def traces_not_used(everything: Sequence[Evidence]) -> list[dict[str, Any]]:
    """Return the cells with figures of traces that are not used, each with the reasons."""
    found = [(seen, withdrawn(seen)) for seen in everything]
    return [{"workload": seen.workload, "stack": seen.stack, "reasons": [*why]} for seen, why in found if why]
