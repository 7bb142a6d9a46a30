"""Foresees which claims a plan can test: what stacks, CPUs, memory and sizes exclude before anything is measured. Pure.

What only a run shows (how long the disks were waited for, what came from them) excludes nothing here.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Any

from fslab.cell import Cell, Frozen, MachineSpec
from fslab.claims.build import asked_of
from fslab.claims.model import Unmet
from fslab.claims.parts import CellFigure, Part
from fslab.claims.requirement_check import ClaimParts, compared_of, differs_in_size, known_of, unmet_of
from fslab.claims.requirements import CellFacts
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope

Facts = Callable[[MachineSpec], Mapping[str, Any]]  # of a machine, as ``machine.facts`` names them
_NATIVE, _FIXED = "native", "fixed-cost"


class Prospect(StrEnum):
    """Whether a claim can be tested.

    ``if_waited``: in a guest whose CPU costs otherwise than natively, if the disks bound the figures.
    ``only_fail``: some of its parts cannot be tested, so that it can be contradicted or below the margin, and not
    replicated.
    """

    TESTABLE = "testable"
    IF_WAITED = "if_waited"
    ONLY_FAIL = "only_fail"
    NOT = "not"


class Foreseen(Frozen):
    """The prospect of one claim. ``why``: the reasons against it, those of most parts first. ``in_part``: some of its
    parts are not measured, so that it can only be replicated in part."""

    claim: str
    says: str
    prospect: Prospect
    why: tuple[str, ...] = ()
    in_part: bool = False


def foresee(
    claims: Sequence[Claim], cells: Sequence[Cell], impossible: Mapping[str, str], facts: Facts
) -> tuple[Foreseen, ...]:
    """Return the prospect of each claim. ``impossible``: why cells cannot be measured, by id."""
    facts, scope = cache(facts), _scope(cells, facts)
    return tuple(_foreseen(claim, asked_of(claim, scope), impossible, facts) for claim in claims)


def excluded(claims: Sequence[Claim], cells: Sequence[Cell], facts: Facts) -> dict[str, str]:
    """Return the cells that only parts of claims need which the plan excludes, by id, and the first reason.

    Empty if it excludes all parts of all claims: then the figures are all that a campaign gives.
    """
    facts, scope = cache(facts), _scope(cells, facts)
    needed: set[str] = set()
    others: dict[str, str] = {}
    for asked in (asked_of(claim, scope) for claim in claims):
        for part in asked.parts:
            own = {figure.cell.id for figure in part.figures}
            against = [one.what for one in _unmet(part, asked, facts) if one.requirement != _NATIVE]
            if against:
                others = dict.fromkeys(own, against[0]) | others
            else:
                needed |= own
        if any(demand.name == _FIXED for demand in asked.demands):  # known from files of two sizes
            needed |= {
                cell.id
                for part in asked.parts
                for figure in part.figures
                for cell in cells
                if differs_in_size(cell, figure.cell)
            }
    return {cell: why for cell, why in others.items() if cell not in needed} if needed else {}


def _scope(cells: Sequence[Cell], facts: Facts) -> Scope:
    memory_bytes = facts(cells[0].stack.machine).get("memory_bytes") if cells else None
    return Scope(cells=tuple(cells), memory_bytes=memory_bytes)


def words(found: Sequence[Foreseen]) -> str:
    """Return the numbers of claims by prospect in one sentence, with the reasons against them."""
    of = Counter(one.prospect for one in found)
    in_part = sum(one.in_part for one in found if one.prospect is Prospect.TESTABLE)
    told = [
        f"{of[Prospect.TESTABLE]} of {len(found)} can be tested{f' ({in_part} only in part)' * bool(in_part)}"
    ]
    if of[Prospect.IF_WAITED]:
        told.append(
            f"{of[Prospect.IF_WAITED]} more if the disks bound them (in a guest, CPU time costs otherwise)"
        )
    if of[Prospect.ONLY_FAIL]:
        told.append(f"{of[Prospect.ONLY_FAIL]} cannot be replicated ({reasons(found, Prospect.ONLY_FAIL)})")
    if of[Prospect.NOT]:
        told.append(f"{of[Prospect.NOT]} cannot be tested ({reasons(found, Prospect.NOT)})")
    return "; ".join(told)


def reasons(found: Sequence[Foreseen], prospect: Prospect) -> str:
    """Return the first reasons against claims with this prospect, each with the number of claims."""
    counts = Counter(one.why[0] for one in found if one.prospect is prospect and one.why)
    return "; ".join(f"{count}: {why}" for why, count in counts.most_common())


def _foreseen(claim: Claim, asked: ClaimParts, impossible: Mapping[str, str], facts: Facts) -> Foreseen:
    absent = [_absence(part, impossible) for part in asked.parts]
    possible = [part for part, why in zip(asked.parts, absent, strict=True) if why is None]
    unmet = [_unmet(part, asked, facts) for part in possible]
    against = Counter(one.what for each in unmet for one in each if one.requirement != _NATIVE)
    met = [each for each in unmet if all(one.requirement == _NATIVE for one in each)]
    why = [what for what, _ in against.most_common()]
    if not met:
        prospect = Prospect.NOT
        why += [*dict.fromkeys(filter(None, absent)), *asked.missing]
    elif len(met) < len(possible):
        prospect = Prospect.ONLY_FAIL
    else:
        prospect = Prospect.IF_WAITED if any(met) else Prospect.TESTABLE
    in_part = bool(met) and (len(possible) < len(asked.parts) or bool(asked.missing))
    return Foreseen(claim=claim.id or "", says=claim.says, prospect=prospect, why=tuple(why), in_part=in_part)


def _absence(part: Part, impossible: Mapping[str, str]) -> str | None:
    cells = [figure.cell for figure in part.figures]
    why = next((impossible[cell.id] for cell in cells if cell.id in impossible), None)
    if why is not None:
        return why.splitlines()[0]
    machines = sorted({cell.stack.machine.type for cell in cells})
    return f"on different machines ({', '.join(machines)})" if len(machines) > 1 else None


def _unmet(part: Part, asked: ClaimParts, facts: Facts) -> list[Unmet]:
    sides = {figure.key: _side(figure, facts) for figure in part.figures}
    return list(unmet_of(compared_of(part, [*sides.values()], asked.lever), asked.demands, measured=False))


def _side(figure: CellFigure, facts: Facts) -> CellFacts:
    found, known = facts(figure.cell.stack.machine), known_of(figure)
    emulated = known.emulated or found.get("emulated") is True
    return replace(known, cpus=found.get("cpus"), memory_bytes=found.get("memory_bytes"), emulated=emulated)
