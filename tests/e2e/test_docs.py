"""Tests of the documentation: the site builds without a network, its pages load nothing from other sites, and every
link in the texts leads to a file.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.directories import once
from tests.e2e.conftest import Fslab, example
from tests.limits import ran

from fslab.cli import app

ROOT = Path(__file__).parents[2]
PARTS = ("Tutorial", "How-to", "Reference", "Explanation")
MADE = {"commands.md"}  # made when the site is built
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


class Fetched(HTMLParser):
    """Collects the addresses that a browser loads automatically."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in {"script", "img", "iframe", "source"} and values.get("src"):
            self.found.append(str(values["src"]))
        if tag == "link" and values.get("rel") not in {"canonical", "next", "prev"}:
            self.found.append(str(values.get("href")))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the directory of the site, built once per session for all workers."""

    def build(out: Path) -> None:
        argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "no_proxy": "*", "FSLAB_PLUGINS": "off"}
        if os.geteuid() == 0:  # in a network namespace without interfaces
            argv = ["unshare", "--net", *argv]
        done = ran(argv, cwd=ROOT, env=environment)
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, worker_id, "site", build)


def test_the_site_has_its_four_parts_and_every_command(site: Path) -> None:
    home = (site / "index.html").read_text()
    for part in PARTS:
        assert part in home
    commands = (site / "commands.html").read_text()
    for command in app.registered_commands:
        assert f"fslab {command.name}" in commands
    assert "fslab store copy" in commands
    assert "fslab crash replay" in commands, "a group that is loaded when it is used"
    assert "ext4" in (site / "study-file.html").read_text()


def test_every_link_of_the_site_leads_to_a_file_of_it(site: Path) -> None:
    """Also those to source files. The page for unknown addresses has links from the root of a server."""
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    links = re.compile(r'href="(?!https?:|mailto:)([^"#?]+)')
    found = [(page, link) for page in pages for link in links.findall(page.read_text())]
    assert any(link.endswith(".py") for _, link in found)
    assert [(page.name, link) for page, link in found if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_text_is_whole_without_the_site(path: Path) -> None:
    """No include directive of the site, and no link to a page that only the site has."""
    text = path.read_text()
    assert not re.search(r"^ *-+8<-+", text, re.MULTILINE)
    assert not MADE & set(LINK.findall(text))


def test_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        parser = Fetched()
        parser.feed(page.read_text())
        assert parser.found
        assert not [link for link in parser.found if re.match(r"(https?:)?//", link)], page
    for sheet in site.rglob("*.css"):
        assert "fonts.googleapis" not in sheet.read_text()


def commands_of(path: Path) -> list[list[str]]:
    """Return the words of each line of code that runs fslab, without comments and ``sudo``."""
    text = path.read_text()
    indented = re.findall(r"^ {4}(.*)$", text, re.MULTILINE)
    fenced = re.findall(r"^```.*\n((?s:.*?))^```", text, re.MULTILINE)
    found = re.findall(r"^(?:sudo )?fslab (.*)$", "\n".join((*indented, *fenced)), re.MULTILINE)
    lines = (re.split(r" {2,}(?=\S)| #", line)[0].removesuffix("\\") for line in found)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_options_of_commands_exist(path: Path) -> None:
    for words in commands_of(path):
        command: Any = typer.main.get_command(app)
        while hasattr(command, "get_command") and not words[0].startswith("-"):
            assert words[0] in command.list_commands(None), (words, path)
            command = command.get_command(None, words.pop(0))
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        given = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
        assert given <= known | {"--help"}, (words, path)


@pytest.mark.root
@pytest.mark.slow
def test_the_tutorial_can_be_followed(fslab: Fslab) -> None:
    """Its commands run as they are, with less work."""
    study = example("tutorial.md", "yaml")
    for full, small in (("trials: 5", "trials: 1"), ("runtime: 2s", "runtime: 1100ms"), ("512m", "320m")):
        assert full in study
        study = study.replace(full, small)
    (fslab.cwd / "first.yaml").write_text(study)
    ran = commands_of(ROOT / "docs/tutorial.md")
    assert {words[0] for words in ran} == {"doctor", "plan", "run", "explain", "report"}
    for words in ran:
        if "--trials" in words:
            words[words.index("--trials") + 1] = "2"
        fslab(*words, *(("--budget", "1s") if "--precision" in words else ()))
    assert (fslab.cwd / "result.html").exists()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    text = re.sub(r"^( {4}|```).*", "", path.read_text(), flags=re.MULTILINE)
    for target in LINK.findall(text):
        if target not in MADE and not target.startswith(("http://", "https://", "#", "mailto:")):
            assert (path.parent / target.partition("#")[0]).exists(), target
