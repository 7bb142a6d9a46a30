"""Tests of speed and safety in a report: a fast stack that breaks promises is named in a warning and in a figure."""

from __future__ import annotations

import pytest
import tests.unit.test_report as reports
from tests.unit.terminal import printed
from tests.unit.test_report import BTRFS, EXT4, IOPS, RANDOM, XFS, cells, five, trial

from fslab.cell import WorkloadSpec
from fslab.report import conclusion_terminal, crash_safety
from fslab.report import crash_safety as drawn
from fslab.report.conclusion import conclude
from fslab.report.model import Report
from fslab.trial_record import Metric, Severity, ValidityWarning
from fslab.units import Direction, Unit

CUTS = WorkloadSpec(name="power-cuts", tool="cuts")
BROKEN = Metric(name=crash_safety.BROKEN, unit=Unit.COUNT, better=Direction.LOWER)
LOST = Metric(name=crash_safety.LOST, unit=Unit.COUNT, better=Direction.LOWER)
SPEED = {"ext4": 200.0, "xfs": 100.0, "btrfs": 50.0}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Report:
    """Return a report in which ext4 is fastest but breaks promises. xfs and btrfs lose only operations that no promise
    covers."""
    monkeypatch.setitem(reports.METRICS, "cuts", (BROKEN, LOST))
    planned = cells((EXT4, XFS, BTRFS), RANDOM, CUTS)
    trials = []
    for cell in planned:
        name = cell.stack.name
        if cell.workload is RANDOM:
            trials += five(cell, {IOPS: SPEED[name]})
        else:
            counts: dict[Metric, float | None] = {BROKEN: 40.0 if name == "ext4" else 0.0, LOST: 7.0}
            trials += [trial(cell, block, counts) for block in range(5)]
    return reports.report(planned, trials)


def test_the_quickest_is_not_named_without_what_it_breaks(found: Report) -> None:
    first = conclude(found).warnings[0]
    assert first.what == (
        "ext4 has the best median in rand-write-4k, but broke up to 40 promises after power cuts (power-cuts)"
    )
    assert first.hint == "use it only for data that may be lost"


def test_one_trial_with_a_broken_promise_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the workload counts nothing else: every operation is promised."""
    monkeypatch.setitem(reports.METRICS, "cuts", (BROKEN,))
    planned = cells((EXT4, XFS), RANDOM, CUTS)
    trials = []
    for cell in planned:
        for block in range(5):
            broken = 3.0 if (cell.stack.name, block) == ("ext4", 2) else 0.0
            values: dict[Metric, float | None] = (
                {IOPS: SPEED[cell.stack.name]} if cell.workload is RANDOM else {BROKEN: broken}
            )
            trials.append(trial(cell, block, values))
    found = reports.report(planned, trials)
    assert conclude(found).sentence.startswith(
        "Power cuts broke promises on ext4 (up to 3), and none on xfs. "
    )
    assert crash_safety.unsafe_stacks(found) == {"ext4"}


def test_no_warning_about_stacks_that_keep_their_promises(found: Report) -> None:
    assert [stack for stack, *_ in crash_safety.unsafe_leaders(found)] == ["ext4"]
    without = found.model_copy(update={"rows": tuple(row for row in found.rows if row.metric != BROKEN.name)})
    assert list(crash_safety.unsafe_leaders(without)) == []
    assert list(drawn.tradeoffs(without, "")) == []


def test_a_stack_whose_fsync_flushes_no_cache_is_not_recommended_beside_those_that_flush() -> None:
    planned = cells((EXT4, XFS, BTRFS), RANDOM)
    warned = ValidityWarning(kind=crash_safety.UNFLUSHED, severity=Severity.WARNING, message="", data={})

    def of(*unsafe: str, as_kind: Severity = Severity.WARNING) -> Report:
        validity = {name: (warned.model_copy(update={"severity": as_kind}),) for name in unsafe}
        trials = [
            trial(
                cell,
                block,
                {IOPS: SPEED[cell.stack.name] + block},
                validity=validity.get(cell.stack.name, ()),
            )
            for cell in planned
            for block in range(5)
        ]
        return reports.report(planned, trials)

    found = of("ext4")
    assert crash_safety.unsafe_stacks(found) == {"ext4"}
    assert conclude(found).warnings[0].what == (
        "ext4 has the best median in rand-write-4k, but fsync does not flush the disk's cache there (rand-write-4k)"
    )
    assert not crash_safety.unsafe_stacks(of("ext4", "xfs", "btrfs")), "no difference between them"
    assert not crash_safety.unsafe_stacks(of("ext4", as_kind=Severity.NOTE)), "the study accounts for it"


def test_the_conclusion_begins_with_what_power_cuts_broke(found: Report) -> None:
    assert conclude(found).sentence.startswith(
        "Power cuts broke promises on ext4 (up to 40), and none on xfs and btrfs. "
        "Operations lost that were not promised: up to 7 on ext4, 7 on xfs and 7 on btrfs (power-cuts). "
    )
    speeds = found.model_copy(update={"rows": tuple(row for row in found.rows if row.workload != CUTS.name)})
    assert "Power cuts" not in conclude(speeds).sentence


def test_a_count_says_what_is_counted(found: Report) -> None:
    text = printed(conclusion_terminal.show, found, conclude(found), width=100)
    assert "power-cuts: promises broken" in text
    assert "rand-write-4k: write" not in text, "IOPS say it themselves"


def test_a_point_for_each_stack(found: Report) -> None:
    (figure,) = drawn.tradeoffs(found, "1-")
    assert (figure.id, figure.marks["stack"]) == ("1-safety-0-rand-write-4k", 3)
    assert figure.alt.endswith("promises were broken on ext4.")
    points = figure.spec["layer"][-1]["data"]["values"]
    assert {each["stack"]: each["gone"] for each in points} == {"ext4": 47, "xfs": 7, "btrfs": 7}
