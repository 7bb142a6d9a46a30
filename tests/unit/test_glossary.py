"""One word for one thing: what the glossary's terms replace stands in no string, no text and no help."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from fslab.cli import app

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs/glossary.md").read_text()
# What is not written, and the field's word for it.
INSTEAD = {
    r"cannot be told apart|no difference (was )?seen|told apart": "indistinguishable",
    r"unsound|\bsound (trial|figure|value)s?\b|\b(is|are|were|be) sound\b": "usable",
    r"\bin doubt\b|\bbefell\b": "with warnings",
    r"\bunsaid\b": "unavailable",
    r"\bcame off\b|\bcome off\b": "completed",
    r"\bmend(s|ed)?\b": "fix",
    r"\bin the mean\b": "on average",
    r"disk of memory": "RAM disk",
    r"averaging error": "uncertainty",
    r"would be refuted by|\bas slow with\b": "falsified if",
    r"how sure is (that|it)": "with what confidence",
    r"nothing to notice": "no mechanism found",
    r"better in no direction": "no preferred direction",
    r"\bacquits?\b|\bhungry\b|\bbeware\b|nobody is answered|truth is known|is no time at all": "plain words",
    r"\b(is|are) no text\b": "is not text",
    r"\bloses? heart\b|\bwants to be\b|\bdoes not care\b": "plain words",
}
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted((ROOT / "src/fslab").rglob("*.py"))


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module: messages, help, docstrings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())


def helps() -> Iterator[tuple[str, str]]:
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        with command.make_context(name, [], resilient_parsing=True, terminal_width=200) as context:
            yield name, " ".join(command.get_help(context).split())


@pytest.mark.parametrize("pattern", INSTEAD, ids=lambda pattern: INSTEAD[pattern])
def test_the_fields_word_is_used(pattern: str) -> None:
    forbidden = re.compile(pattern, re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in MODULES
        for line, text in strings(path)
        if forbidden.search(text)
    ]
    for path in TEXTS:
        text = re.sub(r"`[^`]*`", "", path.read_text())
        found += [
            f"{path.relative_to(ROOT)}: {match[0]}" for match in forbidden.finditer(" ".join(text.split()))
        ]
    found += [f"fslab {name} --help" for name, text in helps() if forbidden.search(text)]
    assert not found, f"write '{INSTEAD[pattern]}'"


def test_each_term_is_defined_once() -> None:
    rows = re.findall(r"^\| (\*\*.+?\*\*)(?:, \*\*.+?\*\*)* \|", GLOSSARY, flags=re.MULTILINE)
    terms = re.findall(r"\*\*(.+?)\*\*", "\n".join(line.split(" | ")[0] for line in GLOSSARY.splitlines()))
    assert len(rows) > 40
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize(
    "term", ["indistinguishable", "inconclusive", "95 % CI", "usable", "invalid", "falsified if"]
)
def test_what_tables_and_messages_say_is_defined(term: str) -> None:
    assert f"**{term}**" in GLOSSARY
