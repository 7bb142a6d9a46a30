"""Reports: the page of one campaign or of several compared with the first, its figures, and tables for papers."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fslab.analysis.groups import headline_metrics
from fslab.api import annotations
from fslab.report import paper
from fslab.report.build import build
from fslab.report.figures import files
from fslab.report.page import assemble, compare, render
from fslab.report.page.assemble import CampaignSource
from fslab.report.page.model import Page
from fslab.report.page.render import LivePage
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.system import paths


def page_of(campaigns: Sequence[Campaign], store: Store) -> Page:
    """Return the page with each campaign, and with the comparison of each one with the first."""
    with _uncollected():
        found = [_source(campaign, store) for campaign in campaigns]
        return assemble.page(found, compare.comparisons(found))


def _source(campaign: Campaign, store: Store) -> CampaignSource:
    """Return a campaign with its trials. Of very many trials, reads only what a brief page shows."""
    claims, printed = annotations.publication(campaign, store)
    if store.count(campaign.id) <= assemble.BRIEF_FROM:
        return CampaignSource(
            campaign=campaign,
            trials=store.trials(campaign.id, raw=True, known=campaign.cells),
            statements=annotations.statements(campaign, store),
            claims=claims,
            printed=printed,
        )
    works = {cell.workload.name: cell.workload for cell in campaign.cells}.values()
    named = {metric.name for work in works for metric in headline_metrics(work)}
    trials = store.trials(campaign.id, only=named or None, known=campaign.cells)
    return CampaignSource(campaign=campaign, trials=trials, claims=claims, printed=printed)


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


def write_figures(page: Page, directory: Path) -> list[Path]:
    """Write every figure of a page as SVG and PNG. Returns the paths. Raises UsageError if they cannot be written."""
    return files.write(assemble.figures(page), directory)


def tables_of(campaigns: Sequence[Campaign], store: Store, *, latex: bool) -> str:
    """Return the tables of campaigns, in LaTeX or Markdown."""
    write = paper.latex if latex else paper.markdown
    return "\n".join(write(build(campaign, store.trials(campaign.id))) for campaign in campaigns)
