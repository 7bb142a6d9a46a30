"""Reads a study's claims and the location of published figures, and checks both against the study's cells.

``fslab.claims`` parses what a claim states; this module adds the line numbers. It evaluates no claim.
"""

from collections.abc import Mapping

from fslab.cell import Cell
from fslab.claims import mistakes as language
from fslab.claims.schema import Claim, Published
from fslab.claims.scope import Scope
from fslab.study import matrix
from fslab.study.fields import is_mapping, keys_of, known_fields, read_keys
from fslab.study.mistakes import Mistakes, suggestion
from fslab.study.model import StudyMedium, StudyStack, StudyWorkload
from fslab.study.source import Node

MOST_MATCHED = 500_000  # claims times cells: each claim looks for its cells among all, 13 s for so many


def read_claims(node: Node, mistakes: Mistakes) -> tuple[Claim, ...]:
    """Return the readable claims, each with an id (default: its number); note what is wrong."""
    if not isinstance(node.content, list):
        mistakes.at(node, "is not a list of claims, each with 'says' and 'that'")
        return ()
    found: list[Claim] = []
    for number, item in enumerate(node.items, start=1):
        if not is_mapping(item, "a claim", mistakes):
            continue
        fields = known_fields(item, keys_of(Claim), mistakes, item)
        values = read_keys(Claim, item, fields, mistakes)
        if "says" in values and "that" in values:
            found.append(Claim(**{"id": str(number), **values}))
            if found[-1].id in {claim.id for claim in found[:-1]}:
                mistakes.at(item, f"there is a claim '{found[-1].id}' already")
    return tuple(found)


def read_published(node: Node, mistakes: Mistakes) -> Published | None:
    """Return where the published figures are; note a mistake and return None if ``node`` is not a mapping."""
    if not is_mapping(node, "what was published", mistakes):
        return None
    fields = known_fields(node, keys_of(Published), mistakes, node)
    return Published(**read_keys(Published, node, fields, mistakes))


def check(
    root: Node,
    claims: tuple[Claim, ...],
    published: Published | None,
    parts: tuple[Mapping[str, StudyStack], Mapping[str, StudyMedium], Mapping[str, StudyWorkload]],
    mistakes: Mistakes,
) -> None:
    """Note each claim and each workload under ``published`` that does not match what the study measures."""
    scope = Scope(cells=tuple(_cells(*parts)), lenient=True)
    if len(claims) * len(scope.cells) > MOST_MATCHED:
        what = f"{len(claims):,} claims on {len(scope.cells):,} cells are more than {MOST_MATCHED:,} together"
        mistakes.at(root.at(("claims",)), f"{what}: make several studies")
        return
    by_id = {
        str(node.fields["id"].content) if "id" in node.fields else str(number): node
        for number, node in enumerate(root.at(("claims",)).items, start=1)
    }
    for claim in claims:
        if mistakes.many:
            return
        entry = by_id[claim.id or ""]
        for path, what in language.mistakes(claim, scope):
            mistakes.at(entry.at(path), what)
    for theirs, ours in (published.workloads if published else {}).items():
        if ours not in scope.workloads:
            what = f"no workload '{ours}'{suggestion(ours, scope.workloads)}"
            mistakes.at(root.at(("published", "workloads", theirs)), what)


def _cells(
    stacks: Mapping[str, StudyStack], media: Mapping[str, StudyMedium], workloads: Mapping[str, StudyWorkload]
) -> list[Cell]:
    expanded = matrix.stack_specs(stacks, media)
    return [
        Cell(stack=stack, workload=spec)
        for name, workload in workloads.items()
        for spec in matrix.workload_specs(name, workload)
        for entry, stack in expanded
        if stacks[entry].runs(name)
    ]
