"""Campaigns for tests of report pages: recorded output of fio, with made-up metrics whose ratios are easy to see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fslab.cell import Cell, MediumSpec, Scalar, StackSpec, TrialKey, WorkloadSpec
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.trial_record import Command, Provenance, Severity, Status, TrialRecord, ValidityWarning, Value
from fslab.units import Unit

GOLDEN = Path(__file__).parents[1] / "golden/fio-3.33"
TITLE = "<script>window.evil = 1</script> & 'quotes' \"double\""
NAME = "random <img src=x onerror=window.evil=2>"
CREATED = datetime(2026, 11, 20, 21, 49, tzinfo=UTC)
MEDIUM = MediumSpec(name="memory", type="ram", options={"size": "1g"})
EXT4, XFS, BTRFS = (StackSpec(name=name, medium=MEDIUM, filesystem=name) for name in ("ext4", "xfs", "btrfs"))
STACKS = (EXT4, XFS, BTRFS)
STEPS = (0.98, 0.99, 1.0, 1.01, 1.02)
BASE = {"ext4": 60_000.0, "xfs": 120_000.0, "btrfs": 60_100.0}
WARNING = ValidityWarning(
    kind="cpu_saturated", severity=Severity.WARNING, message="all CPUs <b>were</b> busy", hint="fewer jobs"
)
INVALID = ValidityWarning(kind="too_short", severity=Severity.INVALID, message="measured for 0.2 s")


def workload(name: str, **parameters: Scalar) -> WorkloadSpec:
    return WorkloadSpec(
        name=name,
        tool="fio",
        parameters={"rw": "randwrite", "direct": True, "iodepth": 32, "size": "256m", **parameters},
    )


def cells(*workloads: WorkloadSpec) -> tuple[Cell, ...]:
    return tuple(Cell(stack=stack, workload=each) for each in workloads for stack in STACKS)


def trial(cell: Cell, block: int, iops: float, **more: Any) -> TrialRecord:
    """Return a trial with the recorded output of one fio run (4 KiB random writes, queue depth 32)."""
    fields: dict[str, Any] = {
        "key": TrialKey(campaign="c1", block=block, seed=block),
        "cell": cell,
        "status": Status.OK,
        "started": CREATED + timedelta(seconds=10 * block),
        "duration_s": 1.5,
        "metrics": {
            "write_iops": Value(value=iops, unit=Unit.IOPS),
            "write_bandwidth": Value(value=iops * 4096, unit=Unit.BYTES_PER_SECOND),
        },
        "probes": {
            "machine_cpu_user": Value(value=20.0, unit=Unit.PERCENT),
            "machine_cpu_system": Value(value=30.0, unit=Unit.PERCENT),
            "machine_cpu_irq": Value(value=2.0, unit=Unit.PERCENT),
            "machine_cpu_iowait": Value(value=10.0, unit=Unit.PERCENT),
            "machine_cpu_steal": Value(value=5.0, unit=Unit.PERCENT),
            "write_amplification": Value(value=1.25, unit=Unit.RATIO),
        },
        "provenance": Provenance(
            commands=(Command(stage="run", argv=("fio", "--name=a b"), duration_s=1.5),),
            tools={"fio": "3.33"},
        ),
        "raw": {"stdout": "", "fio.json": (GOLDEN / "randwrite-4k-qd32.json").read_text()},
    }
    return TrialRecord(**{**fields, **more})


def campaign(planned: tuple[Cell, ...], **more: Any) -> Campaign:
    fields: dict[str, Any] = {
        "id": "20261120-214900-c0de", "study_id": "quick", "study_title": TITLE, "study_source": "title: x <y>",
        "seed": 7, "cells": planned, "trials": 5, "created": CREATED, "status": CampaignStatus.FINISHED,
        "machine": {"kernel": "6.18.44", "cpu": "Xeon", "cpus": 2, "memory_bytes": 24 * 2**30},
    }  # fmt: skip
    return Campaign(**{**fields, **more})


def small() -> tuple[Campaign, list[TrialRecord]]:
    """Return a campaign of 9 cells, 8 with metrics: 3 stacks with two block sizes and a workload with a hostile name.

    5 trials per cell. All trials of btrfs have a warning, one trial of each xfs cell is invalid. The ninth cell, btrfs
    with the hostile name, has one failed trial.
    """
    planned = cells(
        workload("sizes[bs=4k]", bs="4k"),
        workload("sizes[bs=64k]", bs="64k"),
        workload(NAME, bs="4k"),
    )
    trials = []
    for cell in planned:
        name = cell.stack.filesystem or ""
        share = 0.25 if cell.workload.parameters["bs"] == "64k" else 1.0
        if cell.workload.name == NAME and name == "btrfs":
            trials.append(
                trial(
                    cell,
                    0,
                    1.0,
                    status=Status.FAILED,
                    failure="crashed",
                    error="it <i>crashed</i>",
                    metrics={},
                    raw={},
                )
            )
            continue
        for block, step in enumerate(STEPS):
            warnings = (WARNING,) if name == "btrfs" else (INVALID,) if (name, block) == ("xfs", 4) else ()
            trials.append(trial(cell, block, BASE[name] * step * share, validity=warnings))
    return campaign(planned), trials


def many(workloads: int) -> tuple[Campaign, list[TrialRecord]]:
    """Return a campaign with this number of workloads, 3 stacks and 5 trials per cell."""
    planned = cells(
        *(workload(f"w{number}[bs={number + 1}k]", bs=f"{number + 1}k") for number in range(workloads))
    )
    trials = [
        trial(cell, block, BASE[cell.stack.name] * step, raw={})
        for cell in planned
        for block, step in enumerate(STEPS)
    ]
    return campaign(planned, study_title="Many"), trials


def long_names() -> tuple[Campaign, list[TrialRecord]]:
    """Return a campaign of 8 stacks and 6 workloads whose names differ only at their ends."""
    options = (
        "mkfs_options=-O ^has_journal -E lazy_itable_init=0,mount_options=noatime,data=writeback,commit="
    )
    stacks = [
        StackSpec(
            name=f"ext4 md-raid10 [{options}{number}]", medium=MEDIUM, filesystem="ext4", fill=f"{number}%"
        )
        for number in range(1, 9)
    ]
    works = [
        workload(f"random-write-with-a-long-name[bs=4k,iodepth={depth}]", iodepth=depth)
        for depth in range(1, 7)
    ]
    planned = tuple(Cell(stack=stack, workload=each) for each in works for stack in stacks)
    trials = [
        trial(cell, block, 60_000.0 * (1 + number % 8) * step, raw={})
        for number, cell in enumerate(planned)
        for block, step in enumerate(STEPS)
    ]
    return campaign(planned), trials
