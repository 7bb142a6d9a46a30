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
    """The page of campaigns: each of them, and each compared with the first."""

    # Values by the hundred thousand, all of them in use: looking for cycles among them only costs time.
    gc.disable()
    try:
        return sources.page(campaigns, store, ANNOTATIONS)
    finally:
        gc.freeze()
        gc.enable()


def html_of(page: Page) -> str:
    return render.html(page, kept=paths.cache())
