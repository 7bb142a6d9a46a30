"""Tests of one study on several machines: ratios within each, their combination, and facts that coincide."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import exp, prod
from pathlib import Path
from typing import Any

import pytest
from tests.made import campaign as new_campaign
from tests.made import iops, known, stored, trial
from tests.unit.terminal import printed
from typer.testing import CliRunner

from fslab.analysis.fleet import Fleet, FleetVerdict, fleet
from fslab.answers.across_machines import within_machine
from fslab.answers.ratio import Question, estimate
from fslab.api import comparisons
from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.cli import app
from fslab.errors import NoSpaceError, StoreError, UsageError
from fslab.report import fleet_terminal
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.system import memory
from fslab.trial_record import Metric, Provenance, TrialRecord, Value
from fslab.units import Direction, Unit

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)
IOPS = Metric(name="write_iops", unit=Unit.IOPS)
LATENCY = Metric(name="clat_p99", unit=Unit.NANOSECONDS, better=Direction.LOWER)
WORK = WorkloadSpec(name="commit", tool="fio", parameters={"bs": "4k"})


def cells(path: str = "/dev/sdb") -> tuple[Cell, Cell]:
    """Return cells of two stacks. ``path``: the path of the disk, which differs from machine to machine."""
    medium = MediumSpec(name="disk", type="device", options={"path": path})
    one, two = (
        Cell(stack=StackSpec(name=name, medium=medium, filesystem=name), workload=WORK)
        for name in ("ext4", "xfs")
    )
    return one, two


def campaign(
    machine: str, ratio: float, *, number: int = 0, noise: float = 0.01, level: float = 100.0, blocks: int = 6,
    planned: Sequence[Cell] | None = None, disk: str | None = None, **facts: Any,
) -> tuple[Campaign, list[TrialRecord]]:  # fmt: skip
    """Return a campaign in which XFS is ``ratio`` times as fast as ext4, at any level of the machine and with drift."""
    chosen, name = random.Random(f"{machine} {number}"), f"{machine}-{number}"
    known = {"hostname": machine, "kernel": "6.1", "cpu": "A", **facts}
    own = tuple(planned or cells(f"/dev/disk/by-id/{machine}"))
    made = new_campaign(
        name, study_id="nightly", cells=own, trials=blocks, created=BEGUN + timedelta(days=number), machine=known
    )  # fmt: skip
    device = {} if disk is None else {"device": f"{machine}-sdb", "model": disk, "nr_requests": blocks}
    provenance = Provenance(machine=known, tools={}, device=device)
    trials = []
    for block in range(blocks):
        drift = level * (1 + block)
        for cell, factor in zip(own, (1.0, ratio), strict=True):
            value = drift * factor * (1 + chosen.gauss(0, noise))
            metrics = {**iops(value), "clat_p99": Value(value=1e9 / value, unit=Unit.NANOSECONDS)}
            fields = {"started": made.created, "provenance": provenance, "metrics": metrics}
            trials.append(trial(block, cell, campaign=name, **fields))
    return made, trials


def told(measured: Sequence[tuple[Campaign, list[TrialRecord]]], **more: Any) -> Fleet:
    return fleet(measured, metrics_of=lambda _: (IOPS,), **more)


def lines(found: Fleet, *, each: bool = False) -> list[str]:
    return printed(fleet_terminal.show, found, width=110, each=each).splitlines()


def shown(found: Fleet) -> str:
    """Return the whole output as one line, so that line breaks do not matter."""
    return " ".join(" ".join(lines(found)).split())


SIX = {"lab1": 1.40, "lab2": 1.55, "lab3": 1.48, "lab4": 1.62, "lab5": 1.45, "lab6": 1.52}


def six(**facts: Any) -> list[tuple[Campaign, list[TrialRecord]]]:
    return [
        campaign(name, ratio, level=10 ** (number % 3), **facts)
        for number, (name, ratio) in enumerate(SIX.items())
    ]


def machines(*ratios: float) -> list[tuple[Campaign, list[TrialRecord]]]:
    return [campaign(f"m{number}", ratio) for number, ratio in enumerate(ratios)]


def test_ratios_within_machines_are_combined_and_tell_of_another_one() -> None:
    found = told(six())
    (row,) = found.rows
    assert (row.stack, row.reference, row.verdict) == ("xfs", "ext4", FleetVerdict.EVERYWHERE)
    assert {one.machine: one.ratio for one in row.machines} == pytest.approx(SIX, rel=0.02)
    assert row.average == pytest.approx(1.50, rel=0.02)
    wide, narrow = known(row.prediction), known(row.interval)
    assert 1.2 < wide.low < narrow.low < 1.5 < narrow.high < wide.high < 1.9
    assert row.spread == pytest.approx(0.054, abs=0.02)
    assert known(row.share) > 0.9
    text = shown(found)
    assert "xfs 1.50 × ext4" in text
    assert "on another machine: better there too; machines differ by ± 5" in text
    assert text.count("lab3") == 1  # only in the list of machines
    assert any(line.startswith("    lab3  1.4") for line in lines(found, each=True))


def test_the_ratio_of_one_machine_is_that_of_a_comparison_there() -> None:
    """One block of twelve is far off: the centre of signed ranks is not the geometric mean."""
    over = {block: 2.0 + 0.01 * block for block in range(12)} | {5: 40.0}
    under = dict.fromkeys(over, 1.0)
    found = known(within_machine(over, under))
    assert found.ratio == estimate(Question(over=over, under=under)).ratio
    assert found.interval.low < found.ratio < found.interval.high
    assert exp(found.mean) == pytest.approx(prod(over.values()) ** (1 / 12))


def test_machines_that_contradict_each_other_are_said_to() -> None:
    found = told(machines(0.95, 1.3, 1.8, 1.1, 1.5, 1.4, 1.7))
    (row,) = found.rows
    assert row.verdict is FleetVerdict.ON_AVERAGE
    assert "better on average; another machine may differ" in shown(found)
    opposed = told(machines(0.6, 1.5, 0.9, 1.2, 0.8, 1.3))
    assert opposed.rows[0].verdict is FleetVerdict.UNDECIDED
    assert "no difference shown on average" in shown(opposed)


def test_of_a_latency_the_ratio_is_that_of_the_figures_and_below_one_is_better() -> None:
    found = fleet(six(), metrics_of=lambda _: (LATENCY,))
    assert found.rows[0].average == pytest.approx(1 / 1.50, rel=0.02)
    assert "xfs 0.66 × ext4" in shown(found)
    assert "better there too" in shown(found)


def test_few_machines_are_listed() -> None:
    found = told(six()[:4])
    (row,) = found.rows
    assert (row.verdict, row.average, row.prediction) == (FleetVerdict.FEW_MACHINES, None, None)
    text = shown(found)
    assert "  xfs ÷ ext4" in lines(found)
    assert "lab4 1.6" in text
    assert "combining needs 5 machines" in text


def test_campaigns_of_one_machine_count_as_one_machine() -> None:
    measured = [campaign("lab", 1.5, number=number, level=10.0**number) for number in range(5)]
    found = told(measured)
    assert [machine.campaigns for machine in found.machines] == [tuple(each.id for each, _ in measured)]
    assert found.rows[0].machines[0].n == 30


def test_one_machine_stays_one_after_reboots_and_with_more_memory() -> None:
    found = told([
        campaign("lab", 1.5, number=number, memory_bytes=10**10 - 4096 * number, cpus=4 + number)
        for number in range(6)
    ])  # fmt: skip
    assert [machine.name for machine in found.machines] == ["lab"]
    assert found.rows[0].verdict is FleetVerdict.FEW_MACHINES


def test_two_machines_with_one_name_are_two() -> None:
    found = told([campaign("debian", 1.5, number=0), campaign("debian", 1.4, number=1, cpu="B")])
    assert [machine.name for machine in found.machines] == ["debian", "debian (2)"]
    updated = told([campaign("debian", 1.5, number=0), campaign("debian", 1.4, number=1, kernel="6.12")])
    assert [machine.name for machine in updated.machines] == ["debian"]


def test_machines_of_one_kind_and_name_are_distinguished_by_their_ids() -> None:
    old = campaign("debian", 1.2, number=0)
    ids = [
        campaign("debian", 1.2, number=number, machine_id=each) for number, each in enumerate("aba", start=1)
    ]
    found = told([old, *ids])
    assert [machine.name for machine in found.machines] == ["debian", "debian (2)"]
    # One without an id belongs to the first.
    assert [len(machine.campaigns) for machine in found.machines] == [3, 1]
    same = told([campaign("debian", 1.2, number=number) for number in range(3)])
    assert [machine.name for machine in same.machines] == ["debian"]


def test_another_study_of_the_same_name_is_not_taken_for_it() -> None:
    """On one machine, the study has another block size. Its cells are not combined with those of the others."""
    changed = tuple(
        cell.model_copy(update={"workload": WORK.model_copy(update={"parameters": {"bs": "64k"}})})
        for cell in cells()
    )
    odd = campaign("odd", 9.0, number=9, planned=changed)
    for measured in ([odd, *six()], [*six(), odd]):
        found = told(measured)
        assert [len(row.machines) for row in found.rows] == [6, 1], "what most machines have is first"
        assert found.rows[0].left_out == ("odd",)
        assert [row.workload for row in found.rows] == ["commit (bs=4k)", "commit (bs=64k)"]
        assert "; without odd" in shown(found)
        assert found.uncommon == 4
        assert "4 cells that not all machines have" in shown(found)


def test_figures_that_have_no_ratio_or_no_noise_leave_a_machine_out_and_that_is_reported() -> None:
    coarse, zero = campaign("coarse", 2.0, noise=0.0), campaign("zero", 1.5)
    stalled = zero[1][0].model_copy(update={"metrics": {"write_iops": Value(value=0.0, unit=Unit.IOPS)}})
    found = told([*six(), coarse, (zero[0], [stalled, *zero[1][1:]])])
    (row,) = found.rows
    assert row.left_out == ("coarse", "zero")
    assert "; without coarse, zero" in shown(found)


def test_a_fact_that_changed_meanwhile_goes_with_nothing() -> None:
    """Half of the machines changed from kernel 6.1 to 6.12 between two campaigns.

    The ratio of such a machine is from both kernels, so it cannot coincide with one of them.
    """
    measured = []
    for number in range(8):
        ratio = 1.2 + 0.4 * (number % 2)
        measured.append(campaign(f"m{number}", ratio, number=0))
        measured.append(campaign(f"m{number}", ratio, number=1, kernel=("6.1", "6.12")[number % 2]))
    assert told(measured).rows[0].coincides == ()


def test_the_reference_is_the_stack_of_that_name_before_a_file_system() -> None:
    medium = cells()[0].stack.medium
    tuned = Cell(
        stack=StackSpec(name="tuned", medium=medium, filesystem="xfs", mount_options="noatime"), workload=WORK
    )
    planned = (tuned, cells()[1])
    found = told([campaign("lab", 1.5, planned=planned)], against="xfs")
    assert [(row.stack, row.reference) for row in found.rows] == [("tuned", "xfs")]


def test_a_machine_with_too_few_blocks_does_not_count() -> None:
    found = told([*six()[:5], campaign("new", 9.0, number=1, blocks=2)])
    assert "new" not in {one.machine for one in found.rows[0].machines}
    alone = told([campaign("new", 9.0, blocks=2)])
    assert (alone.rows, alone.partial) == ((), ("commit on xfs, write_iops",))
    assert "too few blocks on every machine: commit on xfs, write_iops" in shown(alone)


def test_a_fact_that_goes_with_the_ratio_is_a_coincidence() -> None:
    old = [campaign(f"old{number}", 1.2 + number / 100) for number in range(4)]
    new = [
        campaign(f"new{number}", 1.6 + number / 100, kernel="6.12", kernel_build="#2") for number in range(4)
    ]
    found = told([*old, *new])
    (split,) = found.rows[0].coincides
    assert split.facts == ("kernel: 6.1 / 6.12",)
    assert split.ratios == pytest.approx((1.215, 1.615), rel=0.02)
    assert split.p_value == pytest.approx(2 / 70)
    assert "this need not be the cause" in shown(found)
    mixed = [
        campaign(f"m{number}", 1.2 + number / 10, kernel=("6.1", "6.12")[number % 2]) for number in range(8)
    ]
    assert told(mixed).rows[0].coincides == ()
    assert told(six()).rows[0].coincides == ()


def test_the_kernel_of_trials_in_guests_is_that_of_the_guests() -> None:
    """The hosts have two kernels and two CPUs, with which the ratio goes; the guests have one kernel."""
    measured = []
    for number in range(8):
        late = number > 3
        ratio = 1.2 + number / 100 + late / 2
        made, records = campaign(f"m{number}", ratio, kernel=("6.1", "6.12")[late], cpu="AB"[late])
        guest = Provenance(machine={"machine": "uml", "kernel": "6.18", "cpu": "none", "host": made.machine})
        measured.append((made, [each.model_copy(update={"provenance": guest}) for each in records]))
    found = told(measured)
    assert [split.facts for split in found.rows[0].coincides] == [("cpu: A / B",)]
    assert {machine.kernel for machine in found.machines} == {"6.18"}


def test_the_model_of_a_disk_is_a_fact() -> None:
    measured = [
        campaign(f"m{number}", 1.2 + number / 100 + (number > 3) / 2, disk="AB"[number > 3])
        for number in range(8)
    ]
    (split,) = told(measured).rows[0].coincides
    assert split.facts == ("device.model: A / B",), "neither its name nor what all have alike"


def test_chance_is_counted_over_all_rows() -> None:
    """Of ten workloads, one has the ratios of its machines divided like their kernels. Alone it would be shown."""
    work = [
        WORK.model_copy(update={"name": f"w{number}", "parameters": {"bs": f"{number + 1}k"}})
        for number in range(10)
    ]
    rows = []
    for number in range(8):
        new = number > 3
        parts = []
        for place, each in enumerate(work):
            step = new if place == 0 else number % 2
            planned = [cell.model_copy(update={"workload": each}) for cell in cells()]
            ratio = 1.2 + number / 100 + step / 5
            parts.append(campaign(f"m{number}", ratio, planned=planned, kernel=("6.1", "6.12")[new]))
        whole = parts[0][0].model_copy(
            update={"cells": tuple(cell for one, _ in parts for cell in one.cells)}
        )
        rows.append((whole, [trial for _, trials in parts for trial in trials]))
    assert [row.coincides for row in told(rows).rows] == [()] * 10
    assert told(rows, workloads=["w0"]).rows[0].coincides


def test_the_command_reads_a_store_and_says_what_it_does_not_know(tmp_path: Path) -> None:
    place = stored(tmp_path / "all.sqlite", six())
    run = CliRunner().invoke(app, ["fleet", "results", "--store", place, "--metric", "write_iops", "--json"])
    assert run.exit_code == 0, run.output
    document = json.loads(run.stdout)
    assert [row["verdict"] for row in document["rows"]] == ["everywhere"]
    assert [machine["name"] for machine in document["machines"]] == [*SIX]
    with Store.open(place, create=False) as store:
        against = comparisons.fleet_of(store, against="xfs", metrics=["write_iops"])
        assert against.rows[0].average == pytest.approx(1 / 1.5, rel=0.02)
        for wrong in ({"against": "zfs"}, {"workloads": ["nothing"]}, {"metrics": ["nothing"]}):
            with pytest.raises(UsageError, match="unknown name"):
                comparisons.fleet_of(store, **wrong)
        with pytest.raises(StoreError, match="no campaign of study 'other'"):
            comparisons.fleet_of(store, "other")


def test_a_machine_that_sends_more_than_fits_into_memory_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    measured = six()
    made, (first, *others) = measured[2]
    figures = {f"figure_{number}": Value(value=-0.0, unit=Unit.COUNT) for number in range(2000)}
    measured[2] = made, [first.model_copy(update={"metrics": {**first.metrics, **figures}}), *others]
    place = stored(tmp_path / "all.sqlite", measured)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    with Store.open(place, create=False) as store:
        found = comparisons.fleet_of(store, metrics=["write_iops"])
        assert [machine.name for machine in found.machines] == [name for name in SIX if name != "lab3"]
        assert len(comparisons.histories_of_machines(store, "nightly")) == 5
        with pytest.raises(NoSpaceError, match="the trials of campaign 'lab3-0' need about"):
            store.trials("lab3-0")
    assert "left out: campaign lab3-0 of machine lab3" in caplog.text
