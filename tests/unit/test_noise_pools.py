"""Tests of the noise of a campaign: from which cells the variation of a comparison is estimated."""

from __future__ import annotations

import numpy as np
import pytest
from tests.made import known
from tests.unit.claimed import cell, trials

from fslab.analysis.noise_pools import CampaignNoise
from fslab.cell import Cell, MachineSpec, MediumSpec
from fslab.trial_record import Severity, Status, TrialRecord, ValidityWarning

METRIC = "write_iops"


def campaign(count: int, spread: float = 0.05, workload: str = "w", seed: int = 1) -> list[TrialRecord]:
    random = np.random.default_rng(seed)
    return [
        record
        for number in range(count)
        for record in trials(cell(f"fs{number}", workload), [*np.exp(spread * random.normal(size=4))])
    ]


def pair(workload: str = "w") -> list[tuple[Cell, float]]:
    return [(of("fs0", workload), 1.0), (of("fs1", workload), -1.0)]


def of(name: str, workload: str = "w", **changes: object) -> Cell:
    found = cell(name, workload)
    return found.model_copy(update={"stack": found.stack.model_copy(update=changes)})


def test_a_difference_of_two_cells_has_twice_the_variance_of_one() -> None:
    noise = CampaignNoise(trials=campaign(30))
    one = known(noise.prior(METRIC, pair()))
    assert one.variance == pytest.approx(2 * 0.05**2, rel=0.3)
    four = [(of(f"fs{number}"), weight) for number, weight in enumerate((1, -1, -1, 1))]
    assert known(noise.prior(METRIC, four)).variance == pytest.approx(2 * one.variance)
    # How much a workload varies from block to block is unknown.
    assert noise.prior(METRIC, [(of("fs0"), 1.0)]) is None


def test_cells_with_other_figures_show_the_autocorrelation_of_trials_too() -> None:
    """Two cells with this figure are too few to show it, and four are enough."""
    random = np.random.default_rng(2)
    cells = [cell(f"fs{number}", "w") for number in range(2)]
    cells += [cell(f"fs{number}", "r", rw="randread") for number in range(2)]
    metrics = {"w": "write_iops", "r": "read_iops"}
    made = ((one, [*np.exp(0.02 * random.normal(size=8))]) for one in cells)
    records = [record for one, values in made for record in trials(one, values, metrics[one.workload.name])]
    few = CampaignNoise(trials=[each for each in records if each.cell.workload.name == "w"])
    all_cells = CampaignNoise(trials=records)
    one, other = few.between(all_cells, METRIC).alone
    assert one is not None
    assert other is not None
    assert (one.is_known, other.is_known) == (False, True)
    assert other == all_cells.between(few, "read_iops").alone[0]
    assert CampaignNoise(trials=()).between(few, METRIC).alone == (None, one)


@pytest.mark.parametrize(
    "other",
    [
        of("fs1", "another"),
        of("fs1", medium=MediumSpec(name="disk", type="image")),
        of("fs1", machine=MachineSpec(type="uml")),
    ],
)
def test_cells_of_another_workload_medium_or_machine_show_nothing(other: Cell) -> None:
    noise = CampaignNoise(trials=campaign(30))
    assert noise.prior(METRIC, [(of("fs0"), 1.0), (other, -1.0)]) is None
    assert noise.prior("read_iops", [(of("fs0"), 1.0), (of("fs1"), -1.0)]) is None


def test_a_file_system_with_many_stacks_has_its_own_noise() -> None:
    """As on striped disks: each file system on ten layouts. Four stacks of a third file system get the common noise."""
    random, records = np.random.default_rng(4), []
    kinds = {"xfs": (10, 0.02), "btrfs": (10, 0.2), "ext4": (4, 0.02)}
    for filesystem, (stacks, spread) in kinds.items():
        for number in range(stacks):
            own = of(f"{filesystem}{number}", filesystem=filesystem)
            records += trials(own, [*np.exp(spread * random.normal(size=4))])
    noise = CampaignNoise(trials=records)

    def sd(filesystem: str) -> float:
        pair = [(of(f"{filesystem}{number}", filesystem=filesystem), (-1.0) ** number) for number in (0, 1)]
        found = known(noise.prior(METRIC, pair))
        return float((found.variance / 2) ** 0.5)

    assert sd("xfs") == pytest.approx(0.02, rel=0.4)
    assert sd("btrfs") == pytest.approx(0.2, rel=0.4)
    assert sd("xfs") < sd("ext4") < sd("btrfs")


def test_workloads_have_their_own_noise() -> None:
    noise = CampaignNoise(trials=[*campaign(20), *campaign(20, 0.3, "loud", seed=2)])
    quiet, loud = (known(noise.prior(METRIC, pair(name))) for name in ("w", "loud"))
    assert 20 < loud.variance / quiet.variance < 60


def test_only_usable_values_count() -> None:
    records = campaign(20)
    invalid = ValidityWarning(kind="x", severity=Severity.INVALID, message="x")
    spoilt = [
        record.model_copy(update={"status": Status.FAILED, "failure": "crashed"})
        if number % 2
        else record.model_copy(update={"validity": (invalid,)})
        for number, record in enumerate(records)
    ]
    assert CampaignNoise(trials=spoilt).prior(METRIC, pair()) is None
    few = [record for record in records if record.cell.stack.name in {"fs0", "fs1", "fs2"}]
    assert CampaignNoise(trials=few).prior(METRIC, pair()) is None


def test_small_workloads_on_one_medium_share_their_noise() -> None:
    names = [f"w{number}" for number in range(8)]
    records = [one for seed, name in enumerate(names) for one in campaign(3, workload=name, seed=seed)]
    noise = CampaignNoise(trials=records)
    found = {noise.prior(METRIC, pair(name)) for name in names}
    assert len(found) == 1
    assert None not in found
    assert CampaignNoise(trials=records[: 2 * 12]).prior(METRIC, pair("w0")) is None
