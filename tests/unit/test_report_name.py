"""Tests of the file name of a report: an ending that belongs to another format is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fslab.cli.report import FigureFormat, check_name
from fslab.errors import UsageError


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("r.html", FigureFormat.HTML),
        ("R.HTM", FigureFormat.HTML),
        ("r", FigureFormat.HTML),
        ("-", FigureFormat.HTML),
        ("t.md", FigureFormat.MARKDOWN),
        ("t.tex", FigureFormat.LATEX),
    ],
)
def test_fitting_names(name: str, form: FigureFormat) -> None:
    check_name(Path(name), form)


def test_other_names_are_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"format html does not match the ending '.txt'") as plain:
        check_name(Path("y.txt"))
    assert "name it y.html" in str(plain.value)
    with pytest.raises(UsageError) as other:
        check_name(Path("y.md"))
    assert "fslab report --format md -o y.md" in str(other.value)


def test_a_directory_is_refused_before_anything_takes_time(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory") as found:
        check_name(tmp_path)
    assert found.value.hint == f"name a file: {tmp_path / 'report.html'}"
