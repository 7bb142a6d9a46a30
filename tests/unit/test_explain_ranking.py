"""Tests of the order of mechanisms: by how much the stacks differ in their evidence."""

from __future__ import annotations

import pytest
from tests.unit.explained import MIB, cell, seen

from fslab.api import explanations
from fslab.cli import explain
from fslab.explain.evidence import Certainty, Explanation
from fslab.explain.mechanisms import MOST_WEIGHT, statements_of


def test_mechanisms_are_ranked_by_their_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(mechanism: str, stack: str, weight: float) -> Explanation:
        return Explanation(
            mechanism=mechanism, workload="w", stack=stack, text=f"{mechanism} {weight}", figures=(),
            certainty=Certainty.OBSERVED, refuted_by="r", weight=weight,
        )  # fmt: skip

    found = [
        one("journal", "a", 1.0),
        one("barriers", "a", 6.0),
        one("journal", "b", 3.0),
        one("atime", "b", 1.0),
    ]
    monkeypatch.setattr("fslab.explain.mechanisms.all_statements", lambda _: iter(found))
    ranked = explanations.ranking([])
    assert [(each.mechanism, each.weight) for each in ranked] == [
        ("barriers", 6.0),
        ("journal", 3.0),
        ("atime", 1.0),
    ]
    assert ranked[1].cells == ("w on a", "w on b")
    assert ranked[1].strongest.stack == "b"


def test_what_all_stacks_have_alike_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = [seen(cell(name), {}) for name in ("ext4", "btrfs")]
    a, b = (each.stack for each in stacks)

    def one(mechanism: str, stack: str, weight: float) -> Explanation:
        return Explanation(
            mechanism=mechanism, workload="w", stack=stack, text="", figures=(), certainty=Certainty.OBSERVED,
            refuted_by="r", weight=weight,
        )  # fmt: skip

    found = [
        one("page-cache", a, 10.0),
        one("page-cache", b, 10.0),
        one("barriers", b, 2.0),
        one("journal", a, 0.0),
    ]
    monkeypatch.setattr("fslab.explain.mechanisms.all_statements", lambda _: iter(found))
    ranked = explanations.ranking(stacks)
    assert [(each.mechanism, each.contrast) for each in ranked] == [
        ("barriers", 2.0),
        ("page-cache", 0.0),
        ("journal", 0.0),
    ]
    alone = explanations.ranking(stacks[:1])
    assert alone[0].contrast == 10.0, "of one stack, nothing is known to compare"


def test_no_evidence_outweighs_all_other_by_its_unit() -> None:
    figures = {
        "device_written_bytes_flushed": 64.0 * MIB,
        "write_amplification": 1.0,
        "device_written_bytes": 0.0,
    }
    (cached,) = [
        each
        for each in statements_of(seen(cell("ext4", parameters={"rw": "write", "size": "64m"}), figures))
        if each.mechanism == "page-cache"
    ]
    assert MOST_WEIGHT - 0.1 < cached.weight < MOST_WEIGHT


def test_wrapped_lines_keep_the_indentation_of_their_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    explain.print_wrapped("  There were 4 commits in 0.6 s; the commit interval of 5 s alone makes 0 or 1.")
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("  There were 4 commits")
    assert len(more) == 2
    assert all(line.startswith("  ") and line[2] != " " and len(line) <= 40 for line in more)
