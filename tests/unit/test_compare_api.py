"""Tests of ``fslab.compare``: what was measured under unlike conditions is not compared unless that is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import made
from tests.unit.compared import around, trials
from tests.unit.test_history import night

from fslab.analysis.campaign_comparison import refused
from fslab.api.comparisons import compare
from fslab.errors import UsageError
from fslab.stopping_settings import StoppingRule
from fslab.store import Format
from fslab.store.export import export
from fslab.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Return the path of a store with two campaigns of a study, on two kernels."""
    kernels = enumerate(("6.1.0-25", "6.12.0-1"))
    measured = [night(number, 100.0, kernel=kernel) for number, kernel in kernels]
    return made.stored(tmp_path / "store.sqlite", measured)


def test_unlike_results_have_neither_lines_nor_means(store: str) -> None:
    found = compare(store=store)
    assert "kernel" in [each.fact for each in refused(found)]
    assert (found.lines, found.means) == ((), ())


def test_what_is_allowed_is_compared(store: str) -> None:
    for found in (compare(store=store, differing=["kernel"]), compare(store=store, force=True)):
        assert refused(found) == ()
        assert len(found.lines) == 1


def test_an_export_is_compared_as_the_campaign_is(tmp_path: Path) -> None:
    """In the order of the study, whatever the order of the trials; and the intervals allow for the interim analyses."""
    file = tmp_path / "trials.json"
    cells = [made.cell(made.spec(name), name=work) for work in ("b", "a") for name in ("xfs", "ext4")]
    rule = StoppingRule(trials=3, precision=0.05)
    campaign = made.campaign("c1", cells=tuple(cells), settings={"stopping": rule.model_dump()})
    every = [
        trial for place, each in enumerate(cells) for trial in trials(each, around(90 + 9 * place), "c1")
    ]
    every.sort(key=lambda each: (each.key.block, each.cell.workload.name, each.cell.stack.name))
    path = made.stored(tmp_path / "store.sqlite", [(campaign, every)])
    with Store.open(path) as opened:
        export(opened, "c1", Format.JSON, file)
    stored, exported = (
        compare(name, stacks=["xfs", "ext4"], metrics=["write_iops"], store=path)
        for name in ("c1", str(file))
    )
    assert [each.workload for each in stored.lines] == ["b", "a"]
    assert exported.lines == stored.lines
    assert exported.a.sequential


def test_a_campaign_is_not_compared_with_its_own_trials(tmp_path: Path) -> None:
    """A gate would pass: 'last' is still the baseline if the run of the new state did not start."""
    measured = [night(number, 100.0) for number in range(2)]
    path = made.stored(tmp_path / "store.sqlite", measured)
    (first, *_), (second, *_) = measured
    with Store.open(path) as opened:
        export(opened, second.id, Format.JSON, tmp_path / "base.json")
    base = str(tmp_path / "base.json")
    for a, b, told in (
        (base, "last", "are the same campaign"),
        ("last", "last", "are the same campaign"),
        (base, f"{first.id},{second.id}", f"both contain campaign {second.id}"),
    ):
        with pytest.raises(UsageError, match=told):
            compare(a, b, store=path)
    assert compare(base, first.id, store=path).lines
