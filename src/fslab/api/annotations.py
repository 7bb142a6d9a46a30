"""The annotations of a report page: the study's claims with their verdicts, published figures, and explanations.

Omits claims that cannot be evaluated here (a study of another version, a publication without its file of figures).
"""

from collections.abc import Iterator

from fslab.api import explanations
from fslab.api.claims import of_campaign
from fslab.claims.model import ClaimAnswer, PublishedTable
from fslab.claims.verdict_words import verdict_words
from fslab.errors import FslabError
from fslab.explain.statements import all_statements
from fslab.report.figures.ratios import PrintedRatio, PrintedTable
from fslab.report.page.model import PageClaim, PageStatement
from fslab.store.campaign import Campaign
from fslab.store.store import Store

MOST = 40  # statements on a page: those with the most weight


def publication(campaign: Campaign, store: Store) -> tuple[tuple[PageClaim, ...], tuple[PrintedTable, ...]]:
    """Return the study's claims, evaluated by its published figures and by the campaign's trials, and the tables of
    published figures of which some were measured."""
    if not any(key in campaign.study_source for key in ("claims:", "published:")):
        return (), ()
    try:
        found = of_campaign(campaign, store)
    except FslabError:
        return (), ()
    claims = tuple(
        PageClaim(
            says=each.says,
            published=_verdict(each.published, printed=True),
            verdict=_verdict(each.measured, printed=False),
            evidence=each.measured.words if each.measured else "",
        )
        for each in found.claims
    )
    tables = [_printed(table) for table in found.tables]
    return claims, tuple(table for table in tables if any(each.measured is not None for each in table.ratios))


def _printed(table: PublishedTable) -> PrintedTable:
    """Return the figures of a table except those of the reference itself, whose ratio is 1."""
    at = table.stacks.index(table.reference)
    return PrintedTable(
        name=table.name,
        reference=table.reference,
        ratios=tuple(
            PrintedRatio(
                label=f"{line.workload}, {line.metric}: {stack}", published=cell.printed,
                measured=cell.measured, low=cell.low, high=cell.high,
            )
            for line in table.lines
            for stack, cell in zip(table.stacks, line.cells, strict=True)
            if stack != table.reference and cell.printed is not None
        ),
        left_out=sum(line.cells[at].printed is None for line in table.lines),
    )  # fmt: skip


def statements(campaign: Campaign, store: Store) -> tuple[PageStatement, ...]:
    """Return the explanations for the cells, from the kernel's counters; those with the most weight first."""
    return tuple(_statements(campaign, store))[:MOST]


def _statements(campaign: Campaign, store: Store) -> Iterator[PageStatement]:
    found = all_statements(explanations.evidence_of(campaign, store))
    for each in sorted(found, key=lambda statement: -statement.weight):
        yield PageStatement(
            says=each.text,
            about=f"{each.workload} on {each.stack}",
            sure=each.certainty.value,
            evidence=(*map(str, each.figures), f"falsified if: {each.refuted_by}"),
        )


def _verdict(answer: ClaimAnswer | None, *, printed: bool) -> str:
    return "not printed" if answer is None else verdict_words(answer, printed=printed)
