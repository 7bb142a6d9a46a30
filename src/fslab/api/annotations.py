"""The annotations of a report page: the study's claims with their verdicts, and explanations.

Omits claims that cannot be evaluated here (a study of another version, a publication without its file of figures).
"""

from collections.abc import Iterator

from fslab.api import explanations
from fslab.api.claims import of_campaign
from fslab.claims.model import ClaimAnswer
from fslab.claims.verdict_words import verdict_words
from fslab.errors import FslabError
from fslab.explain.statements import all_statements
from fslab.report.page.model import PageClaim, PageStatement
from fslab.store.campaign import Campaign
from fslab.store.store import Store

MOST = 40  # statements on a page: those with the most weight


def claims(campaign: Campaign, store: Store) -> tuple[PageClaim, ...]:
    """Return the study's claims, evaluated by its published figures and by the campaign's trials."""
    if "claims:" not in campaign.study_source:
        return ()
    try:
        found = of_campaign(campaign, store)
    except FslabError:
        return ()
    return tuple(
        PageClaim(
            says=each.says,
            published=_verdict(each.published, printed=True),
            verdict=_verdict(each.measured, printed=False),
            evidence=each.measured.words if each.measured else "",
        )
        for each in found.claims
    )


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
