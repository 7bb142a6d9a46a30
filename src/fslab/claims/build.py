"""Builds the result of ``fslab claims`` from claims and figures. Pure; shows nothing."""

from collections.abc import Sequence

from fslab.analysis.labels import stack_names
from fslab.cell import Cell
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, EvaluatedClaim, PublishedTable, TableCell, TableLine
from fslab.claims.parser import parse
from fslab.claims.parts import Bounds, CellFigure, Part, quotient
from fslab.claims.published import PLAIN, PublishedFigure, PublishedFigures, is_variant
from fslab.claims.requirement_check import ClaimParts, Setting, answers
from fslab.claims.requirements import demands
from fslab.claims.resolve import Resolver
from fslab.claims.schema import Claim, Published
from fslab.claims.scope import Scope, kind
from fslab.claims.verdict import margin_of
from fslab.stats.median import median
from fslab.stopping_settings import MARGIN, StoppingRule, smallest


def asked_of(claim: Claim, scope: Scope, stopping: StoppingRule | None = None) -> ClaimParts:
    """Return a claim as the parts to be evaluated by the trials of a scope. ``stopping``: has the study's margins."""
    parts, missing, _ = _meaning_of(claim, scope)
    return _asked(claim, parts, missing, stopping)


def _asked(
    claim: Claim, parts: Sequence[Part], missing: Sequence[str], stopping: StoppingRule | None
) -> ClaimParts:
    tails = [figure.metric.is_tail for part in parts for figure in part.figures]
    study = (stopping.margin, stopping.tail_margin) if stopping else ()
    # Not the precision, with which the rows of the tables are decided: a verdict must not depend on it.
    margin = claim.margin or smallest(*study, tail=bool(tails) and all(tails))
    ordered = {_keys(part) for part in parts if part.bounds.is_direction}
    ties = [part.bounds for part in parts if part.bounds.is_tie and _keys(part) in ordered]
    return ClaimParts(
        parts=parts,
        missing=missing,
        margin=margin_of([part.bounds for part in parts], margin, ties),
        demands=demands(claim.requires),
        lever=claim.lever,
    )


def _keys(part: Part) -> frozenset[tuple[str, str]]:
    return frozenset(figure.key for figure in part.figures)


def _meaning_of(claim: Claim, scope: Scope) -> tuple[list[Part], list[str], list[Cell]]:
    """Return the parts, what is missing, and all cells that the claim's words mean."""
    found: list[Part] = []
    missing: list[str] = []
    meant: dict[int, Cell] = {}
    for text in claim.that:
        meaning = Resolver(claim=claim, statement=parse(text), scope=scope)
        try:
            found += meaning.parts()
        except ValueError as error:  # a unit that this metric does not have in another version
            missing.append(str(error))
        missing += meaning.missing
        meant |= meaning.meant
    return found, list(dict.fromkeys(missing)), list(meant.values())


def _with_scope(
    answer: ClaimAnswer, parts: Sequence[Part], meant: Sequence[Cell], scope: Scope
) -> ClaimAnswer:
    """Return the answer with the stacks that it compares and those that it leaves out."""
    names = stack_names(scope.cells)
    used = {figure.cell.stack_id for part in parts for figure in part.figures}
    wanted = {cell.stack_id for cell in meant}
    compared = tuple(dict.fromkeys(name for key, name in names.items() if key in used))
    left_out = tuple(dict.fromkeys(name for key, name in names.items() if key in wanted - used))
    return answer.model_copy(update={"compared": compared, "left_out": left_out})


def judged(
    claims: Sequence[Claim],
    *,
    study: Scope,
    printed: PublishedFigures | None,
    campaign: Scope | None = None,
    judge: Evaluator | None = None,
    setting: Setting | None = None,
    stopping: StoppingRule | None = None,
) -> tuple[EvaluatedClaim, ...]:
    """Judge each claim by the printed figures (cells of the ``study``) and by trials (cells of the ``campaign``).

    ``setting``: what is known beside the trials, by which they are seen to test a claim. ``stopping``: has the study's
    margins.
    """
    measured = _measured(claims, campaign, judge, setting, stopping)
    return tuple(
        EvaluatedClaim(
            id=claim.id or "",
            says=claim.says,
            that=claim.that,
            on=claim.on,
            note=claim.note,
            published=None if printed is None else _published(claim, study, printed),
            measured=answer,
        )
        for claim, answer in zip(claims, measured, strict=True)
    )


def _published(claim: Claim, scope: Scope, printed: PublishedFigures) -> ClaimAnswer:
    parts, missing, meant = _meaning_of(claim, scope)
    return _with_scope(printed.answer(parts, missing, claim.tables), parts, meant, scope)


def _measured(
    claims: Sequence[Claim], scope: Scope | None, judge: Evaluator | None, setting: Setting | None,
    stopping: StoppingRule | None,
) -> Sequence[ClaimAnswer | None]:  # fmt: skip
    """Evaluate all claims together: the level of each verdict depends on the number of verdicts."""
    if scope is None or judge is None:
        return [None] * len(claims)
    meanings = [_meaning_of(claim, scope) for claim in claims]
    asked = [
        _asked(claim, parts, missing, stopping)
        for claim, (parts, missing, _) in zip(claims, meanings, strict=True)
    ]
    return [
        _with_scope(answer, parts, meant, scope)
        for answer, (parts, _, meant) in zip(answers(asked, judge, setting), meanings, strict=True)
    ]


def tables(
    figures: PublishedFigures, published: Published, judge: Evaluator | None, ours: PublishedFigures | None
) -> tuple[PublishedTable, ...]:
    """Return each table of the publication as multiples of a reference.

    ``ours``: the figures of the publication, with their cells in the campaign.
    """
    return tuple(_table(name, figures, published.reference, judge, ours) for name in figures.tables)


def _table(
    name: str,
    figures: PublishedFigures,
    wanted: str | None,
    judge: Evaluator | None,
    ours: PublishedFigures | None,
) -> PublishedTable:
    printed = [one for one in figures.printed if one.table == name]
    stacks = list(dict.fromkeys((one.filesystem, one.variant) for one in printed))
    reference = next((stack for stack in stacks if stack[0] == wanted), stacks[0])
    plain = {variant for _, variant in stacks} == {PLAIN}
    lines = []
    for workload, label in dict.fromkeys((one.workload, one.label) for one in printed):
        row = {
            (one.filesystem, one.variant): one
            for one in printed
            if (one.workload, one.label) == (workload, label)
        }
        base = row.get(reference)
        known = [row.get(stack) for stack in stacks]
        measured = [None if one is None or ours is None else _same(one, ours) for one in known]
        like = next((one for one in measured if one is not None), None)
        if like is not None and judge is not None:  # add what was measured here but not printed
            measured = [
                one or _beside(like, stack, judge) for one, stack in zip(measured, stacks, strict=True)
            ]
        under = measured[stacks.index(reference)]
        cells = tuple(
            _table_cell(one, base, figure, under, judge) for one, figure in zip(known, measured, strict=True)
        )
        unit = next((one.metric.unit for one in row.values() if one.metric is not None), None)
        lines.append(TableLine(workload=workload, metric=label, unit=unit, cells=cells))
    labels = tuple(filesystem if plain else f"{filesystem} {variant}" for filesystem, variant in stacks)
    return PublishedTable(
        name=name, stacks=labels, reference=labels[stacks.index(reference)], lines=tuple(lines)
    )


def _table_cell(
    one: PublishedFigure | None,
    base: PublishedFigure | None,
    over: CellFigure | None,
    under: CellFigure | None,
    judge: Evaluator | None,
) -> TableCell:
    """Return one field: ``one`` ÷ ``base`` as printed, ``over`` ÷ ``under`` as measured."""
    known = TableCell(
        printed=one.value / base.value if one and base else None,
        printed_value=one.value if one else None,
        measured_median=median([*judge.trials.values(over).values()]) if judge and over else None,
    )
    unprinted = "not printed" if one is None else "the reference is not printed" if base is None else None
    if judge is None:
        return known.model_copy(update={"why": unprinted})
    if over is None or under is None:
        return known.model_copy(update={"why": unprinted or "not measured here"})
    if over == under:
        why = judge.trials.why_none(over)
        return known.model_copy(update={"measured": None if why else 1.0, "why": why})
    finding = judge.finding(quotient(over, under, ("", ""), Bounds(), ""), MARGIN)
    measured = {"measured": finding.value, "low": finding.low, "high": finding.high, "why": finding.why}
    return known.model_copy(update=measured)


def _beside(like: CellFigure, stack: tuple[str, str], judge: Evaluator) -> CellFigure | None:
    """Return the same figure of another stack, which the publication does not print."""
    for records in judge.trials.by_cell.values():
        cell = records[0].cell
        if cell.workload == like.cell.workload and kind(cell) == stack[0] and is_variant(cell, stack[1]):
            return CellFigure(cell=cell, metric=like.metric)
    return None


def _same(one: PublishedFigure, ours: PublishedFigures) -> CellFigure | None:
    """Return the campaign's figure that corresponds to a printed one."""
    key = (one.table, one.workload, one.filesystem, one.variant, one.label)
    for other in ours.printed:
        found = (other.table, other.workload, other.filesystem, other.variant, other.label)
        if found == key and other.cells and other.metric is not None:
            return CellFigure(cell=other.cells[0], metric=other.metric)
    return None
