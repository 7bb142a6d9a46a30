"""What tests need of campaigns: stacks, cells, campaigns and trials, made of the fields that matter to a test."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.trial_record import Status, TrialRecord, Value
from fslab.units import Unit

if TYPE_CHECKING:
    from fslab.storage import Workspace

Item = TypeVar("Item")
STARTED = datetime(2026, 11, 20, 21, 49, 7, tzinfo=UTC)


def known(value: Item | None) -> Item:
    """Return a value that must not be None."""
    assert value is not None
    return value


def spec(
    filesystem: str | None = "ext4", medium: MediumSpec | str = "ram", options: dict[str, Any] | None = None,
    **more: Any,
) -> StackSpec:  # fmt: skip
    """Return a stack with the name of its file system. ``medium``: or its type, with these ``options``."""
    disk = MediumSpec(name="m", type=medium, options=options or {}) if isinstance(medium, str) else medium
    return StackSpec(**{"name": filesystem or "here", "medium": disk, "filesystem": filesystem, **more})


def cell(
    stack: StackSpec | str = "ext4", tool: str = "fio", parameters: dict[str, Any] | None = None, name: str = "w",
    **more: Any,
) -> Cell:  # fmt: skip
    """Return a cell. ``stack``: or its file system, on a RAM disk. ``name``: of the workload."""
    return Cell(
        stack=spec(stack) if isinstance(stack, str) else stack,
        workload=WorkloadSpec(name=name, tool=tool, parameters=parameters or {}),
        **more,
    )


CELL = cell("xfs", name="rand")


def campaign(name: str = "c1", **more: Any) -> Campaign:
    fields: dict[str, Any] = {
        "id": name, "study_id": "s", "study_title": "S", "study_source": "", "seed": 1, "cells": (CELL,), "trials": 5,
        "created": STARTED,
    }  # fmt: skip
    return Campaign(**{**fields, **more})


def trial(block: int = 0, of: Cell = CELL, *, campaign: str = "c1", **more: Any) -> TrialRecord:
    fields: dict[str, Any] = {
        "key": TrialKey(campaign=campaign, block=block, seed=block), "cell": of, "status": Status.OK,
        "started": STARTED, "duration_s": 1.0,
    }  # fmt: skip
    return TrialRecord(**{**fields, **more})


def stored(path: Path, measured: Iterable[tuple[Campaign, Sequence[TrialRecord]]]) -> str:
    """Return the path of a store with these campaigns and their trials."""
    with Store.open(str(path)) as opened:
        for made, trials in measured:
            opened.create_campaign(made)
            for each in trials:
                opened.add_trial(each)
    return str(path)


def iops(value: float | None) -> dict[str, Value]:
    """Return the metrics of a trial that only has its rate of writes."""
    return {"write_iops": Value(value=value, unit=Unit.IOPS)}


def run(workspace: "Workspace", of: Cell) -> TrialRecord:
    """Run a trial."""
    from fslab.campaign.trial import run_trial  # for the few that do

    return run_trial(
        of, TrialKey(campaign=workspace.campaign, block=0, seed=7), workspace, machine={"kernel": "here"}
    )


def figures(record: TrialRecord) -> dict[str, float]:
    """Return the metrics of a trial that has any, as far as they are known."""
    assert record.metrics, record.error
    return {name: value.value for name, value in record.metrics.items() if value.value is not None}
