"""Reports: the page of one campaign or of several compared with the first, its figures, and tables for papers."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fslab.analysis.workload_groups import headline_metrics
from fslab.api.claims import of_campaign
from fslab.claims.model import Verdicts
from fslab.errors import FslabError
from fslab.explain import ranking
from fslab.explain.evidence import evidence_of
from fslab.report import paper_table
from fslab.report.build import build
from fslab.report.page import assemble, compare, render
from fslab.report.page.assemble import CampaignSource
from fslab.report.page.model import Page
from fslab.report.page.render import LivePage
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.system import paths

MOST = 40  # statements on a page that tell of no difference


def shown_verdicts(campaign: Campaign, judged: Callable[[], Verdicts]) -> Verdicts | None:
    """Return the verdicts on the claims of a campaign's study; None if it has none, or they cannot be judged."""
    if not any(key in campaign.study_source for key in ("claims:", "published:")):
        return None
    try:
        return judged()
    except FslabError:
        return None


def _judged_now(campaign: Campaign, store: Store) -> Verdicts | None:
    return shown_verdicts(campaign, partial(of_campaign, campaign, store))


def page_of(
    campaigns: Sequence[Campaign],
    store: Store,
    verdicts: Callable[[Campaign, Store], Verdicts | None] = _judged_now,
) -> Page:
    """Return the page with each campaign, and with the comparison of each one with the first."""
    with _uncollected():
        found = [_source(campaign, store, verdicts(campaign, store)) for campaign in campaigns]
        return assemble.page(found, compare.comparisons(found))


def _source(campaign: Campaign, store: Store, verdicts: Verdicts | None) -> CampaignSource:
    """Return a campaign with its trials. Of a large one, reads only what a brief page shows."""
    large = _large(campaign, store)
    if large is None:
        trials = store.trials(campaign.id, raw=True, known=campaign.cells)
        found = evidence_of(campaign.cells, trials, store.traced(campaign.id))
        first, others = ranking.on_page(found, MOST)
        return CampaignSource(
            campaign=campaign, trials=trials, statements=first, other_statements=others, verdicts=verdicts
        )
    works = {cell.workload.name: cell.workload for cell in campaign.cells}.values()
    named = {metric.name for work in works for metric in headline_metrics(work)}
    trials = store.trials(campaign.id, only=named or None, known=campaign.cells)
    return CampaignSource(campaign=campaign, trials=trials, large=large, verdicts=verdicts)


def _large(campaign: Campaign, store: Store) -> str | None:
    """Return how many trials or figures a campaign has that is too large for the details of each trial."""
    if (trials := store.count(campaign.id)) > assemble.BRIEF_FROM:
        return f"{trials:,} trials"
    figures = store.count_figures(campaign.id)
    return f"{figures:,} figures" if figures > assemble.BRIEF_FROM_FIGURES else None


def html_of(page: Page, live: LivePage | None = None) -> str:
    """Return the page as the text of one HTML file. ``live``: the links of a page that a server serves."""
    with _uncollected():
        return render.html(page, live, kept=paths.cache())


@contextmanager
def _uncollected() -> Iterator[None]:
    """Search for no reference cycles: among hundreds of thousands of values, all in use, this only costs time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def default_file(campaign: Campaign) -> Path:
    """Return the path of a campaign's report in the user's data directory."""
    return paths.data() / "reports" / f"{campaign.id}.html"


def tables_of(campaigns: Sequence[Campaign], store: Store, *, latex: bool) -> str:
    """Return the tables of campaigns, in LaTeX or Markdown."""
    write = paper_table.latex if latex else paper_table.markdown
    return "\n".join(write(build(campaign, store.trials(campaign.id))) for campaign in campaigns)
