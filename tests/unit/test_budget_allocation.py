"""Tests of how the remaining time is divided among open claims, with costs that can be added up by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.made import STARTED, trial
from tests.unit.claimed import cell, claim, parts

from fslab.analysis.further_trials import Candidate, Effort, allocate, spent_s
from fslab.claims.model import ClaimVerdict, PartFinding
from fslab.claims.verdict import effort_of

COST = {"a": 1.0, "b": 1.0, "c": 10.0}


def candidate(name: str, blocks: dict[str, int], seen: int = 40) -> Candidate:
    seconds = sum(COST[cell] * more for cell, more in blocks.items())
    return Candidate(name=name, effort=Effort(blocks=blocks, seconds=seconds), blocks=seen)


def cost(cell: str) -> float:
    return COST[cell]


def test_the_cheapest_are_taken_until_the_time_is_full() -> None:
    """The claims of 10 s and 30 s fit into 45 s. The claim of 40 s would fit alone, but not with them: it waits."""
    dear, cheap = candidate("dear", {"c": 4}), candidate("cheap", {"a": 10})
    claims = [dear, cheap, candidate("next", {"b": 10, "a": 20})]
    found = allocate(claims, cost, 45.0)
    assert (found.chosen, found.waiting, found.given_up) == (["cheap", "next"], ["dear"], [])
    assert found.cells == {"a", "b"}
    assert found.seconds == 30.0  # not 40 s: "cheap" pays for ten of the twenty trials of cell a


def test_without_a_limit_all_are_taken() -> None:
    found = allocate([candidate("dear", {"c": 400}), candidate("cheap", {"a": 1})], cost, None)
    assert set(found.chosen) == {"dear", "cheap"}


def test_what_takes_more_than_is_left_alone_is_given_up() -> None:
    claims = [candidate("dear", {"c": 10}), candidate("cheap", {"a": 10})]
    assert allocate(claims, cost, 50.0).given_up == ["dear"]


def test_a_forecast_from_few_blocks_gives_up_late() -> None:
    """With 50 s left, a claim of 100 s is given up after 40 blocks (limit 60 s), but not after 4 (limit 150 s)."""
    cheap = candidate("cheap", {"a": 10})
    assert allocate([candidate("dear", {"c": 10}, seen=4), cheap], cost, 50.0).waiting == ["dear"]
    assert allocate([candidate("dear", {"c": 10}, seen=40), cheap], cost, 50.0).given_up == ["dear"]


def test_time_that_nobody_needs_goes_to_the_likeliest_of_those_given_up() -> None:
    claims = [candidate("hopeless", {"c": 100}), candidate("nearly", {"c": 10})]
    found = allocate(claims, cost, 50.0)
    assert (found.chosen, found.given_up, found.cells) == (["nearly"], ["hopeless"], {"c"})
    assert allocate([candidate("hopeless", {"c": 100})], cost, 50.0).chosen == []


def test_a_failing_part_whose_cells_get_no_more_trials_does_not_stand_for_the_claim() -> None:
    """xfs / btrfs is nearer to a verdict, but btrfs failed too often. xfs / ext4 seems to fail, too."""
    cells = [cell(name) for name in ("xfs", "ext4", "btrfs")]
    asked, _ = parts(claim("xfs > ext4, btrfs"), cells)

    def finding(value: float, further: int) -> PartFinding:
        told: dict[str, Any] = {"what": "p", "where": "w", "bound": "> 1", "verdict": ClaimVerdict.OPEN}
        return PartFinding(**told, value=value, further=further, blocks=4)

    found = [finding(0.90, 3), finding(0.98, 1)]
    plain = effort_of(asked, found, lambda _: 1.0, 0.1)
    assert plain is not None
    assert set(plain.blocks) == {cells[0].id, cells[2].id}
    effort = effort_of(asked, found, lambda _: 1.0, 0.1, exhausted=frozenset({cells[2].id}))
    assert effort is not None
    assert set(effort.blocks) == {cells[0].id, cells[1].id}


def test_waits_for_other_campaigns_are_not_spent() -> None:
    """Four trials of 10 s: 0.5 s after the first, then two that wait for those of another campaign."""
    begun = (0.0, 10.5, 35.0, 60.0)
    trials = [
        trial(block, started=STARTED + timedelta(seconds=at), duration_s=10.0)
        for block, at in enumerate(begun)
    ]
    assert spent_s(trials) == 42.0
