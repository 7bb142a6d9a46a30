"""Tests of figures at the same CPU speed: comparisons use them, tables do not."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from random import Random
from statistics import stdev

import pytest
from tests.unit.claimed import cell, trials

from fslab.analysis.basis import ComparisonBasis
from fslab.analysis.cpu_speed import OBSERVED, SpeedCorrection
from fslab.analysis.groups import groups, metrics_of
from fslab.analysis.noise import CampaignNoise
from fslab.analysis.pairs import row_pairs, samples_of
from fslab.cell import MachineSpec, MediumSpec
from fslab.record import Command, Provenance, TrialRecord
from fslab.units import Direction
from fslab.workloads import ParsedWorkload

METRIC = "write_iops"
BLOCKS = 6
NAMES = ("ext4", "xfs", "btrfs", "jfs")


def watched(record: TrialRecord, rates: list[float], **changes: object) -> TrialRecord:
    observed = {**record.provenance.observed, OBSERVED: tuple(f"{rate:.0f}" for rate in rates)}
    provenance = record.provenance.model_copy(update={"observed": observed, **changes})
    return record.model_copy(update={"provenance": provenance})


def campaign(
    *, seed: int = 1, slower: float = 1.0, follows: float = 0.9, names: Sequence[str] = NAMES,
    layout: str = "single",
) -> list[TrialRecord]:  # fmt: skip
    """Return trials of cells whose figures follow the CPU's speed; those of xfs are ``slower`` times as high."""
    chance = Random(seed)
    found = []
    for name in names:
        speeds = [exp(chance.gauss(0, 0.05)) for _ in range(BLOCKS)]
        noise = [chance.gauss(0, 0.005) for _ in speeds]
        level = slower if name == "xfs" else 1.0
        values = [level * exp(follows * log(speed) + own) for speed, own in zip(speeds, noise, strict=True)]
        for record, speed in zip(trials(cell(name, layout={"layout": layout}), values), speeds, strict=True):
            found.append(watched(record, [1e6 * speed]))
    return found


def by_block(records: list[TrialRecord], name: str) -> dict[int, float]:
    own = [record for record in records if record.cell.stack.name == name]
    return {record.key.block: record.metrics[METRIC].value or 0.0 for record in own}


def known(correction: SpeedCorrection, name: str) -> dict[int, float]:
    found = correction.corrected(METRIC, cell(name))
    assert found is not None
    return dict(found.values)


def scatter(values: dict[int, float]) -> float:
    return stdev(log(value) for value in values.values())


def test_what_follows_the_speed_of_the_cpu_scatters_less() -> None:
    records = campaign()
    correction = SpeedCorrection(trials=records)
    for name in NAMES:
        measured = by_block(records, name)
        corrected = known(correction, name)
        assert corrected.keys() == measured.keys()
        assert scatter(corrected) < scatter(measured) / 3


def test_a_cpu_that_stood_still_for_a_tenth_of_a_run_explains_a_tenth() -> None:
    records = campaign()
    first = records[0]
    stood = {
        METRIC: first.metrics[METRIC].model_copy(update={"value": 0.9 * (first.metrics[METRIC].value or 0.0)})
    }
    rate = float(first.provenance.observed[OBSERVED][0])
    records[0] = watched(
        first.model_copy(update={"metrics": {**first.metrics, **stood}}), [rate] * 9 + [rate / 1000]
    )
    correction = SpeedCorrection(trials=records)
    for name in NAMES:
        assert scatter(known(correction, name)) < scatter(by_block(records, name)) / 3


def test_figures_that_do_not_follow_it_stay_as_they_are() -> None:
    records = campaign(follows=0.0)
    assert SpeedCorrection(trials=records).corrected(METRIC, cell("ext4")) is None


@pytest.mark.parametrize(
    "rates", [(), ("",), ("x",), ("inf",), ("nan",), ("0",), ("-1",), ("1e-308", "1e-308"), ("1e300",)]
)
def test_a_cell_with_a_trial_of_unknown_speed_is_not_corrected(rates: tuple[str, ...]) -> None:
    """Stores can be edited: whatever a record says, there is an answer."""
    first, *others = campaign()
    provenance = first.provenance.model_copy(update={"observed": {OBSERVED: rates}})
    correction = SpeedCorrection(trials=[first.model_copy(update={"provenance": provenance}), *others])
    assert correction.corrected(METRIC, first.cell) is None
    assert correction.corrected(METRIC, cell("xfs")) is not None


def test_one_unknown_part_of_many_does_not_matter() -> None:
    records = [
        watched(record, [0.0, *[float(record.provenance.observed[OBSERVED][0])] * 9]) for record in campaign()
    ]
    assert scatter(known(SpeedCorrection(trials=records), "ext4")) < scatter(by_block(records, "ext4")) / 3


def test_another_machine_shows_nothing() -> None:
    """Four cells of six trials are enough. Two on each of two machines are not: 4 degrees of freedom each."""
    records = []
    for record in campaign():
        kind = "uml" if record.cell.stack.name in NAMES[:2] else "host"
        stack = record.cell.stack.model_copy(update={"machine": MachineSpec(type=kind)})
        records.append(record.model_copy(update={"cell": record.cell.model_copy(update={"stack": stack})}))
    correction = SpeedCorrection(trials=records)
    assert all(correction.corrected(METRIC, record.cell) is None for record in records)


def test_a_comparison_with_a_figure_that_is_not_corrected_uses_measured_values_and_their_noise() -> None:
    names = [f"fs{number}" for number in range(10)]
    first, *others = campaign(names=names)
    records = [first.model_copy(update={"provenance": Provenance()}), *others]
    cells = [cell(name) for name in names]
    basis, measured = ComparisonBasis(trials=records), CampaignNoise(trials=records)
    with_first, without = ([(METRIC, cells[one], 1.0), (METRIC, cells[2], -1.0)] for one in (0, 1))
    assert basis.of(with_first).corrected() is None
    assert basis.of(with_first).prior == measured.prior(METRIC, [(cells[0], 1.0), (cells[2], -1.0)])
    found = basis.of(without)
    quiet, noisy = found.prior, measured.prior(METRIC, [(cells[1], 1.0), (cells[2], -1.0)])
    assert found.corrected() is not None
    assert quiet is not None
    assert noisy is not None
    assert quiet.variance < noisy.variance / 3


def test_a_single_figure_is_no_comparison() -> None:
    basis = ComparisonBasis(trials=campaign())
    assert basis.corrected(METRIC, cell("xfs")) is not None
    assert basis.of([(METRIC, cell("xfs"), 1.0)]).corrected() is None


def test_figures_of_two_media_do_not_share_a_slope_and_are_compared_as_measured() -> None:
    """What slows the loop on one medium would be taken for the machine's doing."""
    records = campaign()
    disk = MediumSpec(name="disk", type="image")
    away = [
        record.model_copy(update={"cell": record.cell.model_copy(update={
            "stack": record.cell.stack.model_copy(update={"medium": disk})
        })})
        for record in campaign(seed=2)
    ]  # fmt: skip
    basis = ComparisonBasis(trials=[*records, *away])
    here, there = records[0].cell, away[0].cell
    assert basis.corrected(METRIC, here) is not None
    assert basis.corrected(METRIC, there) is not None
    assert basis.of([(METRIC, here, 1.0), (METRIC, there, -1.0)]).corrected() is None
    assert basis.of([(METRIC, there, 1.0), (METRIC, away[-1].cell, -1.0)]).corrected() is not None


def test_a_layout_on_which_figures_do_not_follow_the_speed_is_compared_as_measured() -> None:
    """A disk limits the figures of one layout, the CPU those of the other."""
    fast, slow = campaign(layout="md-raid0"), campaign(seed=2, follows=0.0)
    correction = SpeedCorrection(trials=[*fast, *slow])
    assert correction.corrected(METRIC, fast[0].cell) is not None
    assert correction.corrected(METRIC, slow[0].cell) is None


def test_in_a_mean_of_ratios_each_ratio_has_its_own_basis() -> None:
    """The speed of the second workload's trials is not known: its ratio uses measured values, the other does not."""
    names = [f"fs{number}" for number in range(10)]
    second = [
        record.model_copy(update={
            "provenance": Provenance(),
            "cell": record.cell.model_copy(update={"workload": cell("fs0", "another").workload}),
        })
        for record in campaign(seed=2, names=names)
    ]  # fmt: skip
    basis = ComparisonBasis(trials=[*campaign(names=names), *second])
    ones, others = ([cell(name, workload) for name in names[:2]] for workload in ("w", "another"))
    mean = [
        (METRIC, own, sign) for pair in (ones, others) for own, sign in zip(pair, (0.5, -0.5), strict=True)
    ]
    found = basis.of(mean)
    assert [own is not None for own in found.values] == [True, True, False, False]
    assert found.corrected() is None
    assert not basis.of([(METRIC, ones[0], 1.0), (METRIC, others[0], -1.0)]).values


def test_a_ratio_of_two_workloads_is_one_of_measured_values() -> None:
    """They are measured at different times of a block: what the machine does then does not cancel."""
    second = [
        record.model_copy(update={
            "cell": record.cell.model_copy(update={"workload": cell("ext4", "another").workload})
        })
        for record in campaign(seed=2)
    ]  # fmt: skip
    basis = ComparisonBasis(trials=[*campaign(), *second])
    here, there = cell("ext4"), cell("ext4", "another")
    assert basis.corrected(METRIC, here) is not None
    assert basis.corrected(METRIC, there) is not None
    found = basis.of([(METRIC, here, 1.0), (METRIC, there, -1.0)])
    assert not found.values
    assert found.prior is None  # the noise of a block does not show how much a workload varies between blocks


def test_too_few_corrected_cells_to_show_their_noise_are_compared_as_measured() -> None:
    names = [f"fs{number}" for number in range(8)]
    records = [
        record.model_copy(update={"provenance": Provenance()})
        if record.key.block == 0 and int(record.cell.stack.name[2:]) > 3
        else record
        for record in campaign(names=names)
    ]
    basis = ComparisonBasis(trials=records)
    pair = [(METRIC, cell("fs0"), 1.0), (METRIC, cell("fs1"), -1.0)]
    assert basis.corrected(METRIC, cell("fs0")) is not None
    assert basis.of(pair).corrected() is None
    assert basis.of(pair).prior is not None


def test_only_the_part_of_the_run_that_a_figure_was_measured_in_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first half of each run is as noisy as the second, and the figure is measured in the second."""
    chance = Random(3)
    records = [
        watched(
            record,
            [1e6 * exp(chance.gauss(0, 0.05)), 1e6 * (record.metrics[METRIC].value or 0.0)],
            commands=(Command(stage="run", argv=("x",), duration_s=2.0),),
        )
        for record in campaign()
    ]
    blurred = known(SpeedCorrection(trials=records), "xfs")
    monkeypatch.setattr(ParsedWorkload, "windows", lambda *_: {METRIC: (1.0, 2.0)})
    sharp = known(SpeedCorrection(trials=records), "xfs")
    assert scatter(sharp) < 1e-3 < scatter(blurred)


def test_a_difference_is_seen_that_noise_would_hide_and_medians_stay_as_measured() -> None:
    records = campaign(slower=0.97)
    cells = [cell(name) for name in NAMES]
    bare = [record.model_copy(update={"provenance": Provenance()}) for record in records]

    def interval(trials: list[TrialRecord]) -> tuple[float, float]:
        (group,) = groups(cells, trials)
        (metric, *_) = metrics_of(group)
        samples = samples_of(group, metric)
        stacks = ComparisonBasis(trials=trials).of_stacks(group, metric.name)
        row = row_pairs(samples, Direction.HIGHER, coverage=0.95, looks=None, basis=stacks)
        for sample in samples:
            name = sample.spec.name
            assert dict(sample.values) == by_block(trials, name)
        pair = next(pair for pair in row.pairs if {pair.a, pair.b} == {each.stack_id for each in cells[:2]})
        assert pair.estimate.interval is not None
        return pair.estimate.interval.low, pair.estimate.interval.high

    low, high = interval(records)
    assert low > 1
    assert (low * high) ** 0.5 == pytest.approx(1 / 0.97, rel=0.01)
    low_bare, high_bare = interval(bare)
    assert low_bare < 1
    assert high_bare - low_bare > 3 * (high - low)
