"""Tests of ``fslab report``, and of the report that ``fslab run`` makes at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.conftest import MEASURED, Fslab


def test_a_run_ends_with_its_report(fslab: Fslab) -> None:
    (fslab.cwd / "s.yaml").write_text(MEASURED)
    said = fslab("run", "s.yaml", "--report", "new/out.html").stdout
    assert f"report: {fslab.cwd / 'new/out.html'}" in said
    assert "<h1>A &amp; &lt;b&gt; report</h1>" in (fslab.cwd / "new/out.html").read_text()
    said = fslab("run", "s.yaml").stdout
    by_itself = said.partition("report: ")[2].splitlines()[0]
    assert by_itself.endswith(".html")
    assert Path(by_itself).is_file()
    sentence = fslab.json("results", "--json")["conclusion"]["sentence"]
    last = said.rstrip().rpartition("\n\n")[2]
    assert " ".join(last.split()).startswith(sentence), "the verdict is last"


def test_files_and_formats(measured: Fslab) -> None:
    campaign = measured.json("results", "--json")["campaign"]
    measured("report")
    assert (measured.cwd / f"{campaign}.html").is_file()
    assert measured("report", "-o", "-").stdout.startswith("<!doctype html>")
    assert measured("report", "-f", "md").stdout.startswith("## A & \\<b\\> report\n")
    assert r"\begin{tabular}{lr}" in measured("report", "--format", "latex").stdout
    measured("report", "-o", "x.html", "--figures", "figures")
    assert (measured.cwd / "figures/order.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_two_campaigns_are_compared(measured: Fslab) -> None:
    measured("run", "s.yaml", "--json")
    measured("report", "last~1", "last", "-o", "two.html")
    text = (measured.cwd / "two.html").read_text()
    assert text.count('<article class="part">') == 2
    assert text.count('<section class="comparison">') == 1


def test_what_cannot_be_done_is_reported(measured: Fslab) -> None:
    assert "cannot be" in measured("report", "-o", "/proc/no/report.html", code=2).stderr
    assert "a campaign is named twice" in measured("report", "last", "last", code=2).stderr
    assert "no campaign" in measured("report", "nothing", code=7).stderr
