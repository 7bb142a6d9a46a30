"""Tests of the validity rules for all trials of a campaign together, with synthetic series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fslab.trial_record import Severity
from fslab.units import Direction
from fslab.validity.campaign_warnings import REGISTRY, Series, campaign_warnings

CALM = (100.0, 101.3, 99.2, 100.6, 98.9, 100.2, 99.6, 101.1, 99.9, 100.8)


def series(
    values: Sequence[float],
    *,
    stack: str = "ext4",
    better: Direction = Direction.HIGHER,
    headline: bool = True,
) -> Series:
    return Series(
        workload="w", stack=stack, metric="rate", better=better, headline=headline, values=dict(enumerate(values))
    )  # fmt: skip


def kinds(*campaign: Series) -> list[str]:
    return [found.warning.kind for found in campaign_warnings(campaign)]


@pytest.mark.parametrize("name", REGISTRY.names())
def test_every_rule_says_what_it_is_and_nothing_of_nothing(name: str) -> None:
    rule = REGISTRY.get(name)
    assert rule.summary
    assert rule.kind == name.replace("-", "_")
    assert [*rule.findings(())] == []
    assert [*rule.findings((series(()), series((1.0,)), series((0.0,) * 12)))] == []


def test_steady_trials_give_no_warning() -> None:
    assert kinds(series(CALM), series(CALM[::-1], stack="xfs")) == []


def test_all_becoming_slower_is_drift_and_of_the_whole_campaign() -> None:
    slower = [100.0, 98.0, 96.0, 93.0, 90.0]
    latency = [10.0, 10.2, 10.5, 10.9, 11.3]  # lower is better, so this becomes worse
    (found,) = campaign_warnings((series(slower), series(latency, stack="xfs", better=Direction.LOWER)))
    assert (found.warning.kind, found.warning.severity, found.series) == ("drift", Severity.NOTE, None)
    assert found.warning.data["change"] < -0.05
    assert "slower" in found.warning.message


def test_a_machine_that_becomes_faster_drifts_too_and_a_step_is_told_by_its_block() -> None:
    faster = [100.0, 103.0, 105.0, 108.0, 111.0]
    (found,) = campaign_warnings((series(faster),))
    assert found.warning.message == "all cells became faster during the campaign, by 10 %"
    step = [value * (1 if block < 5 else 0.7) for block, value in enumerate(CALM)]
    (found,) = [each for each in campaign_warnings((series(step),)) if each.warning.kind == "drift"]
    assert found.warning.message.endswith(" %, most of all at block 5")


def test_cells_count_alike_whatever_their_unit() -> None:
    falling = [1.0, 0.95, 0.9, 0.85, 0.8]
    assert "drift" in kinds(series(falling), series([1e6] * 5, stack="xfs")), "their mean falls by a tenth"


def test_scatter_is_no_drift_however_large() -> None:
    scattered = (100.0, 70.0, 125.0, 80.0, 120.0, 75.0, 110.0, 90.0, 85.0, 80.0)
    assert kinds(series(scattered)) == []
    assert kinds(series(scattered), series(CALM, stack="xfs")) == []


def test_what_has_no_logarithm_or_no_direction_goes_no_way() -> None:
    rising = [value * (1 + 0.05 * block) for block, value in enumerate(CALM)]
    for one in (series((0.0, *rising)), series(rising, better=Direction.NEITHER)):
        found = kinds(one, series(CALM, stack="xfs"))
        assert not {"drift", "stack_drift"} & set(found)


def test_cells_that_go_different_ways_are_no_drift() -> None:
    up, down = [100.0, 102.0, 104.0, 107.0, 110.0], [100.0, 98.0, 96.0, 93.0, 90.0]
    assert "drift" not in kinds(series(up), series(down, stack="xfs"))


def test_one_cell_that_is_still_repeated_is_not_the_machine() -> None:
    falling = [100.0, 98.0, 96.0, 93.0, 90.0, 87.0, 85.0, 82.0]
    others = [series([100.0, 101.0, 99.5, 100.2, 100.1], stack=name) for name in ("xfs", "btrfs")]
    assert "drift" not in kinds(series(falling), *others)
    assert "drift" in kinds(series(falling))  # if it is the only cell


def test_drift_that_does_not_matter_is_not_told() -> None:
    assert kinds(series([100.0, 99.5, 99.0, 98.5, 98.0])) == []
    assert kinds(series([100.0, 98.0, 96.0, 93.0, 90.0], headline=False)) == []


def test_the_longest_of_more_operations_is_no_slower_stack() -> None:
    def of(stack: str, rate: float, *, set_time: bool = True, metric: str = "write_clat_max") -> list[Series]:
        found = (("write_iops", Direction.HIGHER, rate), (metric, Direction.LOWER, 1e6))
        return [
            Series(
                workload="w", stack=stack, metric=name, better=better, headline=False, values={0: value, 1: value},
                set_time=set_time,
            )
            for name, better, value in found
        ]  # fmt: skip

    found = campaign_warnings((*of("ext4", 300), *of("xfs", 900)))
    assert [(each.warning.kind, each.series and each.series.metric) for each in found] == [
        ("unequal_numbers", "write_clat_max")
    ] * 2
    assert found[0].warning.message.startswith(
        "in the same time, the stacks did 300 to 900 operations per second"
    )
    assert kinds(*of("ext4", 300, metric="latency_max"), *of("xfs", 900, metric="latency_max")) != []
    assert kinds(*of("ext4", 300), *of("xfs", 449)) == []
    assert kinds(*of("ext4", 300), *of("xfs", 450)) == ["unequal_numbers"] * 2
    assert kinds(*of("ext4", 300, set_time=False), *of("xfs", 900, set_time=False)) == []
    assert kinds(*of("ext4", 300, metric="write_clat_p99"), *of("xfs", 900, metric="write_clat_p99")) == []


def test_two_groups_of_trials() -> None:
    low = [100.0 + 0.1 * step for step in range(10)]
    high = [150.0 + 0.1 * step for step in range(10)]
    # In irregular order, so that there is no autocorrelation.
    mixed = [low[0], high[0], high[1], low[1], high[2], low[2], low[3], high[3], low[4], high[4],
             high[5], low[5], low[6], high[6], high[7], low[7], high[8], low[8], high[9], low[9]]  # fmt: skip
    (found,) = campaign_warnings((series(mixed), series(CALM, stack="xfs")))
    assert (found.warning.kind, found.warning.severity) == ("multimodal", Severity.WARNING)
    assert found.series is not None
    assert found.series.stack == "ext4"
    near = [value if value < 120 else value - 47 for value in mixed]  # 103 instead of 150
    assert kinds(series(near)) == []


def test_trials_that_resemble_the_ones_before() -> None:
    wave = [100, 104, 108, 110, 111, 109, 105, 101, 97, 93, 91, 90, 92, 95, 99, 103, 107, 110, 109, 104]
    (found,) = [
        each for each in campaign_warnings((series([*map(float, wave)]),)) if each.warning.kind != "drift"
    ]
    assert (found.warning.kind, found.warning.severity) == ("autocorrelated", Severity.WARNING)
    assert found.warning.data["lag1"] > 0.5
    small = [100 + (value - 100) * 0.05 for value in wave]
    assert kinds(series(small)) == []
    backwards = series([*map(float, wave)])
    shuffled = dict(sorted(backwards.values.items(), key=lambda item: item[0] % 7))
    assert kinds(replace(backwards, values=shuffled)) == kinds(backwards), "by block, in whatever order"


@pytest.mark.parametrize("better", [Direction.HIGHER, Direction.LOWER])
def test_one_stack_that_becomes_slower_than_the_others_is_named(better: Direction) -> None:
    """The machine becomes faster; the speed of ``btrfs`` relative to it falls by a fifth."""

    def stack(name: str, values: Sequence[float]) -> Series:
        speeds = [value * (1 + 0.02 * block) for block, value in enumerate(values)]
        return series(
            [1 / speed if better is Direction.LOWER else speed for speed in speeds], stack=name, better=better
        )

    ageing = [value * (1 - 0.025 * block) for block, value in enumerate(CALM)]
    others = (stack("ext4", CALM[::-1]), stack("xfs", CALM[3:] + CALM[:3]))
    campaign = campaign_warnings((*others, stack("btrfs", ageing)))
    (one,) = [each for each in campaign if each.warning.kind == "stack_drift"]
    assert one.warning.severity == Severity.WARNING
    assert one.series is not None
    assert one.series.stack == "btrfs"
    assert one.warning.message == "it became slower by 23 % within 10 blocks, relative to the other stacks"
    assert "stack_drift" not in kinds(*others, stack("btrfs", CALM))
    filling = [value * (1 + 0.025 * block) for block, value in enumerate(CALM)]
    campaign = campaign_warnings((others[0], stack("btrfs", filling)))
    (one,) = [each for each in campaign if each.warning.kind == "stack_drift"]
    assert one.warning.message == "it became faster by 23 % within 10 blocks, relative to the other stack"
