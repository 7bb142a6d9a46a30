"""Reads the contents of a page from a store: campaigns, and trials with the output of their tools. Changes nothing.

Shared by ``fslab report``, ``fslab run`` and ``fslab serve``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fslab.analysis import campaign_comparison
from fslab.analysis.groups import headline_metrics
from fslab.report.page import assemble
from fslab.report.page.assemble import BRIEF_FROM, CampaignSource
from fslab.report.page.compare import comparison
from fslab.report.page.model import Page, PageClaim, PageComparison, PageStatement
from fslab.store.campaign import Campaign
from fslab.store.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotations:
    """Functions that return the statements and claims of a campaign.

    They are arguments, because a report must not depend on the code that makes them.
    """

    statements: Callable[[Campaign, Store], tuple[PageStatement, ...]] = lambda _campaign, _store: ()
    claims: Callable[[Campaign, Store], tuple[PageClaim, ...]] = lambda _campaign, _store: ()


def page(campaigns: Sequence[Campaign], store: Store, annotations: Annotations) -> Page:
    """Return the page of campaigns: each campaign, and each compared with the first."""
    sources = [source(campaign, store, annotations) for campaign in campaigns]
    return assemble.page(sources, comparisons(sources))


def source(campaign: Campaign, store: Store, annotations: Annotations) -> CampaignSource:
    """Return a campaign with its trials. Of very many trials, reads only what a brief page shows."""
    if store.count(campaign.id) <= BRIEF_FROM:
        return CampaignSource(
            campaign=campaign,
            trials=store.trials(campaign.id, raw=True, known=campaign.cells),
            statements=annotations.statements(campaign, store),
            claims=annotations.claims(campaign, store),
        )
    works = {cell.workload.name: cell.workload for cell in campaign.cells}.values()
    named = {metric.name for work in works for metric in headline_metrics(work)}
    return CampaignSource(
        campaign=campaign,
        trials=store.trials(campaign.id, only=named or None, known=campaign.cells),
        claims=annotations.claims(campaign, store),
    )


def comparisons(sources: Sequence[CampaignSource]) -> list[PageComparison]:
    """Compare each campaign with the first. Differing facts are shown and do not prevent the comparison."""
    if len(sources) < 2:
        return []
    sides = [campaign_comparison.Results.of_campaign(each.campaign, each.trials) for each in sources]
    found = [
        campaign_comparison.compare_results(sides[0], other, allowed=[campaign_comparison.ALL])
        for other in sides[1:]
    ]
    return [comparison(each, f"compare-{number}") for number, each in enumerate(found, start=1) if each.lines]
