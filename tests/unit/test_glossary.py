"""Tests that code, documents and help use the terms of the glossary, and not the words that these replace."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

from fslab.cli import app

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs/glossary.md").read_text()
# The words that must not be used, as patterns, with the term to use instead.
INSTEAD = {
    r"cannot be told apart|no difference (was )?seen|told apart|indistinguishable": "alike, or open",
    r"unsound|\bsound (trial|figure|value)s?\b|\b(is|are|were|be) sound\b": "usable",
    r"\bdoubt(s|ed|ful)?\b|\bbefell\b": "with warnings",
    r"separated by blanks": "separated by spaces",
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


def strings(path: Path) -> list[tuple[str, str]]:
    """Return the place and the text of each string of a module: messages, help, docstrings."""
    where = path.relative_to(ROOT)
    return [
        (f"{where}:{node.lineno}", " ".join(node.value.split()))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def helps() -> list[tuple[str, str]]:
    found = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        with command.make_context(name, [], resilient_parsing=True, terminal_width=200) as context:
            found.append((f"fslab {name} --help", " ".join(command.get_help(context).split())))
    return found


def prose(path: Path) -> tuple[str, str]:
    """Return the name and the text of a document, without quoted code."""
    return str(path.relative_to(ROOT)), " ".join(re.sub(r"`[^`]*`", "", path.read_text()).split())


def written() -> list[tuple[str, str]]:
    """Return the place and the text of everything that is checked: code, documents, help."""
    return [each for path in MODULES for each in strings(path)] + list(map(prose, TEXTS)) + helps()


def test_the_fields_words_are_used() -> None:
    texts = written()
    found = [
        f"{where}: {match[0]}: write '{term}'"
        for pattern, term in INSTEAD.items()
        for where, text in texts
        if (match := re.search(pattern, text, re.IGNORECASE))
    ]
    assert found == []


def test_each_term_is_defined_once() -> None:
    rows = re.findall(r"^\| (\*\*.+?\*\*)(?:, \*\*.+?\*\*)* \|", GLOSSARY, flags=re.MULTILINE)
    terms = re.findall(r"\*\*(.+?)\*\*", "\n".join(line.split(" | ")[0] for line in GLOSSARY.splitlines()))
    assert len(rows) > 30
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize("term", ["alike (± 10 %)", "open", "95 % CI", "usable", "invalid", "falsified if"])
def test_what_tables_and_messages_say_is_defined(term: str) -> None:
    assert f"**{term}**" in GLOSSARY
