"""What the tests of explanations make: cells, and trials with the figures of probes."""

from __future__ import annotations

from typing import Any

from tests import made

from fslab.cell import Cell
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import statements_of
from fslab.trial_record import TrialRecord, Value
from fslab.units import Unit

MIB = 1 << 20
SYNCED = {"rw": "randwrite", "bs": "4k", "fsync": 1, "size": "64m"}
DIRECT = {"rw": "randwrite", "bs": "4k", "direct": True, "size": "64m"}


def cell(
    filesystem: str = "btrfs", mount: str = "defaults", parameters: dict[str, Any] | None = None, **more: Any
) -> Cell:
    fields = {"name": f"{filesystem} {mount}", "mount_options": mount, **more}
    stack = made.spec(filesystem, options={"size": "1g"}, **fields)
    return made.cell(stack, parameters=parameters or SYNCED)


def trial(of: Cell, figures: dict[str, float], block: int = 0, **more: Any) -> TrialRecord:
    units = {"_bytes": Unit.BYTES, "_time": Unit.SECONDS, "_mean": Unit.NANOSECONDS}
    probes = {
        name: Value(value=value, unit=next((u for end, u in units.items() if name.endswith(end)), Unit.COUNT))
        for name, value in figures.items()
    }
    return made.trial(block, of, probes=probes, **more)


def written(mib: float, amplification: float = 1.0, **more: float) -> dict[str, float]:
    """Return the figures of a trial in which the device received so much, as a multiple of what was written."""
    return {"device_written_bytes_flushed": mib * MIB, "write_amplification": amplification, **more}


def seen(of: Cell, figures: dict[str, float], traced: TrialRecord | None = None, **more: Any) -> Evidence:
    return Evidence(
        cell=of, workload="w", stack=of.stack.name, trials=[trial(of, figures, **more)], traced=traced
    )


def by_mechanism(found: Evidence) -> dict[str, str]:
    return {statement.mechanism: statement.text for statement in statements_of(found)}
