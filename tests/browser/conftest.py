"""Fixtures for tests with headless Chromium (that of the distribution), driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # each worker imports this file
    from playwright.sync_api import Browser, ConsoleMessage, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT_MS = 300_000  # enough for a busy machine; only failing tests reach it
SCREENSHOTS = Path(__file__).parents[2] / "target/browser"


@dataclass
class Opened:
    """An open page. ``said``: its console messages and errors. ``asked``: the URLs that it requested."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        self.said.append(f"{message.type}: {message.text}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    # Chromium's sandbox does not work for root. Running without it is acceptable: Chromium opens only pages of tests.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield found
        found.close()


Opener = Callable[..., Opened]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Yield a function that opens HTML text, or an http address, in a new browser context."""
    contexts = []

    def open_it(html: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Opened:
        address = html
        if not html.startswith("http://"):
            file = tmp_path / "report.html"
            file.write_text(html)
            address = file.as_uri()
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        context.set_default_timeout(LIMIT_MS)
        contexts.append(context)
        page = context.new_page()
        found = Opened(page=page)
        page.on("console", found.hear)
        page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
        page.on("request", lambda request: found.asked.append(request.url))
        page.goto(address)
        return found

    yield open_it
    for context in contexts:
        context.close()
