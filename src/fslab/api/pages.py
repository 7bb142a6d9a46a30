"""Reports: the page of one campaign or of several compared with the first, its figures, and tables for papers."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fslab.analysis.groups import headline_metrics
from fslab.api.claims import of_campaign
from fslab.claims.model import EvaluatedClaim, PublishedTable, Verdicts
from fslab.errors import FslabError
from fslab.explain.statement import Explanation
from fslab.explain.statements import all_statements, evidence_of
from fslab.record import TrialRecord
from fslab.report import paper
from fslab.report.build import build
from fslab.report.figures import files
from fslab.report.figures.ratios import PrintedRatio, PrintedTable
from fslab.report.page import assemble, compare, render
from fslab.report.page.assemble import CampaignSource
from fslab.report.page.model import Page
from fslab.report.page.render import LivePage
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.system import paths

MOST = 40  # statements on a page: those with the most weight


class Publication(NamedTuple):
    """The claims of a campaign's study, evaluated by its published figures and by the campaign's trials, and the tables
    of published figures of which some were measured."""

    claims: tuple[EvaluatedClaim, ...] = ()
    printed: tuple[PrintedTable, ...] = ()


def publication(campaign: Campaign, judged: Callable[[], Verdicts]) -> Publication:
    """Return what the page shows of the publication. ``judged`` is only called if the study has one."""
    if not any(key in campaign.study_source for key in ("claims:", "published:")):
        return Publication()
    try:
        found = judged()
    except FslabError:
        return Publication()
    tables = [_printed(table) for table in found.tables]
    measured = (table for table in tables if any(each.measured is not None for each in table.ratios))
    return Publication(found.claims, tuple(measured))


def _judged_now(campaign: Campaign, store: Store) -> Publication:
    return publication(campaign, partial(of_campaign, campaign, store))


def page_of(
    campaigns: Sequence[Campaign],
    store: Store,
    published: Callable[[Campaign, Store], Publication] = _judged_now,
) -> Page:
    """Return the page with each campaign, and with the comparison of each one with the first."""
    with _uncollected():
        found = [_source(campaign, store, published(campaign, store)) for campaign in campaigns]
        return assemble.page(found, compare.comparisons(found))


def _source(campaign: Campaign, store: Store, published: Publication) -> CampaignSource:
    """Return a campaign with its trials. Of a large one, reads only what a brief page shows."""
    claims, printed = published
    large = _large(campaign, store)
    if large is None:
        trials = store.trials(campaign.id, raw=True, known=campaign.cells)
        found = statements(campaign, trials, store.traced(campaign.id))
        return CampaignSource(
            campaign=campaign, trials=trials, statements=found, claims=claims, printed=printed
        )
    works = {cell.workload.name: cell.workload for cell in campaign.cells}.values()
    named = {metric.name for work in works for metric in headline_metrics(work)}
    trials = store.trials(campaign.id, only=named or None, known=campaign.cells)
    return CampaignSource(campaign=campaign, trials=trials, large=large, claims=claims, printed=printed)


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


def write_figures(page: Page, directory: Path) -> list[Path]:
    """Write every figure of a page as SVG and PNG. Returns the paths. Raises UsageError if they cannot be written."""
    return files.write(assemble.figures(page), directory)


def tables_of(campaigns: Sequence[Campaign], store: Store, *, latex: bool) -> str:
    """Return the tables of campaigns, in LaTeX or Markdown."""
    write = paper.latex if latex else paper.markdown
    return "\n".join(write(build(campaign, store.trials(campaign.id))) for campaign in campaigns)


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


def statements(
    campaign: Campaign, trials: Sequence[TrialRecord], traced: Sequence[TrialRecord]
) -> tuple[Explanation, ...]:
    """Return the explanations for the cells, from the kernel's counters; those with the most weight first."""
    found = all_statements(evidence_of(campaign.cells, trials, traced))
    return tuple(sorted(found, key=lambda statement: -statement.weight)[:MOST])
