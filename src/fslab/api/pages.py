"""Reports: the page of one campaign, or of several compared with the first."""

import gc
from collections.abc import Sequence

from fslab.api.annotations import ANNOTATIONS
from fslab.report import sources
from fslab.report.page import render
from fslab.report.page.model import Page
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.system import paths


def page_of(campaigns: Sequence[Campaign], store: Store) -> Page:
    """Return the page with each campaign, and with the comparison of each one with the first."""

    # Hundreds of thousands of values, all in use: a search for reference cycles among them only costs time.
    gc.disable()
    try:
        return sources.page(campaigns, store, ANNOTATIONS)
    finally:
        gc.freeze()
        gc.enable()


def html_of(page: Page) -> str:
    return render.html(page, kept=paths.cache())
