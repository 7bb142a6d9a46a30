"""What the tests of explanations make: cells, and trials with the figures of probes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.explain.evidence import Evidence
from fslab.explain.statements import statements_of
from fslab.record import Status, TrialRecord, Value
from fslab.units import Unit

MIB = 1 << 20
SYNCED = {"rw": "randwrite", "bs": "4k", "fsync": 1, "size": "64m"}
DIRECT = {"rw": "randwrite", "bs": "4k", "direct": True, "size": "64m"}


def cell(
    filesystem: str = "btrfs", mount: str = "defaults", parameters: dict[str, Any] | None = None, **more: Any
) -> Cell:
    stack = StackSpec(
        name=f"{filesystem} {mount}", medium=MediumSpec(name="m", type="ram", options={"size": "1g"}),
        filesystem=filesystem, mount_options=mount, **more,
    )  # fmt: skip
    return Cell(stack=stack, workload=WorkloadSpec(name="w", tool="fio", parameters=parameters or SYNCED))


def trial(of: Cell, figures: dict[str, float], block: int = 0, **more: Any) -> TrialRecord:
    units = {"_bytes": Unit.BYTES, "_time": Unit.SECONDS}
    probes = {
        name: Value(value=value, unit=next((u for end, u in units.items() if name.endswith(end)), Unit.COUNT))
        for name, value in figures.items()
    }
    fields: dict[str, Any] = {"status": Status.OK, "probes": probes, **more}
    key = TrialKey(campaign="c", block=block, seed=1)
    return TrialRecord(key=key, cell=of, started=datetime(2026, 11, 21, tzinfo=UTC), duration_s=1.0, **fields)


def seen(of: Cell, figures: dict[str, float], traced: TrialRecord | None = None, **more: Any) -> Evidence:
    return Evidence(
        cell=of, workload="w", stack=of.stack.name, trials=[trial(of, figures, **more)], traced=traced
    )


def by_mechanism(found: Evidence) -> dict[str, str]:
    return {statement.mechanism: statement.text for statement in statements_of(found)}
