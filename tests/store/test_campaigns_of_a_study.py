"""Tests of which campaigns of a study were measured under equal conditions, and of what is judged by all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import exp
from pathlib import Path

import pytest
from tests import made
from typer.testing import CliRunner

from fslab.api.claims import campaigns_like, verdicts
from fslab.cell import Cell
from fslab.claims.model import ClaimVerdict
from fslab.cli import app
from fslab.plan.expand import expand
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study import load
from fslab.trial_record import Provenance, Slices

NAMES = [f"w{number}" for number in range(12)]
SOURCE = "\n".join((
    "title: S",
    "media: {disk: {type: ram, size: 1g}}",
    "stacks: {ext4: {medium: disk, filesystem: ext4}, xfs: {medium: disk, filesystem: xfs}}",
    "workloads:",
    *(f"  {name}: {{tool: fio, rw: randwrite, size: 4m}}" for name in NAMES),
    "claims:",
    *(f"  - {{says: XFS is faster, that: [xfs > ext4], on: [{name}], metric: iops}}" for name in NAMES),
    "",
))  # fmt: skip


SLICES = Slices(count=40, started_s=0.0, ran_s=1.0)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SOURCE)
    return tmp_path / "s.yaml"


def stored(
    store: Store,
    study: Path,
    name: str,
    *,
    kernel: str = "6.18",
    cells: Sequence[Cell] = (),
    sliced: bool = False,
) -> Campaign:
    """Store a campaign in which XFS has about 1.05 times the figures of ext4. Each figure changes by 5 % from one to
    the next, and within a campaign by 0.2 %."""
    known, facts = load.load(str(study)), {"kernel": kernel, "hostname": "here", "cpus": 8}
    campaign = made.campaign(
        name, study_id=known.id, cells=tuple(cells or expand(known)), machine=facts, study_source=SOURCE,
        status=CampaignStatus.FINISHED,
    )  # fmt: skip
    store.create_campaign(campaign)
    draw = random.Random(name)
    for cell in campaign.cells:
        own = 100.0 * exp(draw.gauss(0, 0.05)) * (1.05 if cell.stack.name == "xfs" else 1.0)
        for block in range(5):
            figures = made.iops(own * exp(draw.gauss(0, 0.002)))
            with_facts = Provenance(machine=facts, slices=SLICES if sliced else None)
            store.add_trial(made.trial(block, cell, campaign=name, metrics=figures, provenance=with_facts))
    return campaign


def test_runs_have_the_same_cells_and_no_decisive_fact_differs(store: Store, study: Path) -> None:
    last = [stored(store, study, name) for name in ("c1", "c2", "c3")][-1]
    stored(store, study, "newer", kernel="6.19")
    stored(store, study, "fewer", cells=last.cells[:2])
    stored(store, study, "in-slices", sliced=True)
    assert [each.id for each in campaigns_like(last, store)] == ["c1", "c2"]
    assert campaigns_like(store.campaign("newer"), store) == []


def test_a_study_is_judged_by_all_its_campaigns_and_a_campaign_by_itself(
    store: Store, url: str, study: Path, tmp_path: Path
) -> None:
    for name in ("c1", "c2", "c3"):
        stored(store, study, name)
    alone, together = (verdicts(target, url) for target in ("c3", str(study)))
    assert (alone.others, alone.between) == ((), None)
    assert together.others == ("c1", "c2")
    assert together.between is not None
    assert together.between.changes == pytest.approx(0.05, rel=0.4)
    # A campaign is sure of each difference, also of those in the wrong direction; three campaigns are not.
    found = [[each.measured.verdict for each in one.claims if each.measured] for one in (alone, together)]
    assert ClaimVerdict.OPEN not in found[0]
    assert found[1].count(ClaimVerdict.OPEN) > len(NAMES) / 2
    assert not {ClaimVerdict.REVERSED, ClaimVerdict.OPPOSITE} & set(found[1])

    def told(*argv: str) -> str:
        done = CliRunner().invoke(app, [*argv, "--store", url])
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.split())

    assert "of one campaign: what changes from one to the next is not in the intervals" in told(
        "claims", "c3"
    )
    assert "of 3 campaigns: the intervals contain what changes from one to the next" in told(
        "claims", str(study)
    )
    assert "(another one may decide)" in told("claims", str(study))
    assert "of one campaign" in told("replicate", "c3")
    told("replicate", str(study), "--write", str(tmp_path))
    page = (tmp_path / "s.md").read_text()
    assert "here: campaigns c1, c2, c3" in page
    assert "of 3 campaigns" in page
