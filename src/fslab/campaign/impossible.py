"""Cells that cannot be measured on this machine: found out before the campaign begins, stored once, with the reason.

Looks only; what keeps all cells from being measured is an error of the user's, and is left to ``preflight``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fslab.cell import Cell, MachineSpec, StackSpec, TrialKey
from fslab.errors import FslabError, UnsupportedError
from fslab.machine import choose
from fslab.machine.kinds import Need
from fslab.plan import possible
from fslab.record import Provenance, Status, TrialRecord
from fslab.storage import Workspace, stack
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS

Reasons = Mapping[str, FslabError]
"""Why not, by the id of the cell."""


def reasons(cells: Sequence[Cell], workspace: Workspace) -> Reasons:
    """The cells of stacks that this machine cannot build, or whose workload their file system cannot take.

    Raises what is wrong with a stack otherwise: no room, no root, a danger to data.
    """
    stacks: dict[str, StackSpec] = {cell.stack.model_dump_json(): cell.stack for cell in cells}
    refused = {key: error for key, spec in stacks.items() if (error := _refusal(spec, workspace))}
    found: dict[str, FslabError] = {}
    for cell in cells:
        why = refused.get(cell.stack.model_dump_json()) or _unfit(cell)
        if why is not None:
            found[cell.id] = why
    return found


def record(cell: Cell, campaign: str, error: FslabError, machine: Mapping[str, Any]) -> TrialRecord:
    """What is stored of it: one trial that took no time, in the first block. A guest that never ran has no facts."""
    facts = dict(machine) if cell.stack.machine == MachineSpec() else {}
    return TrialRecord(
        key=TrialKey(campaign=campaign, block=0, seed=0), cell=cell, status=Status.UNSUPPORTED,
        failure=error.failure.value, error=str(error), started=datetime.now(UTC), duration_s=0.0,
        provenance=Provenance(machine=facts),
    )  # fmt: skip


def foreseen(cell: Cell) -> FslabError | None:
    """Why a cell cannot be measured here, as far as that can be told without root and without touching anything."""
    return _unbuildable(cell.stack) or _unfit(cell)


def _refusal(spec: StackSpec, workspace: Workspace) -> UnsupportedError | None:
    if (error := _unbuildable(spec)) is not None:
        return error
    try:
        stack.check(spec, workspace)
    except UnsupportedError as error:
        return error
    return None


def _unbuildable(spec: StackSpec) -> UnsupportedError | None:
    for need in _lacking(spec, spec.machine):
        return UnsupportedError(
            need.what,
            where=f"{spec.name} on {spec.machine.type}",
            hint=need.remedy or _elsewhere(spec),
        )
    try:
        choose.check(spec)
    except UnsupportedError as error:
        return error
    return None


def _lacking(spec: StackSpec, machine: MachineSpec) -> tuple[Need, ...]:
    if spec.filesystem is None:
        return ()
    return (
        *choose.missing_filesystem(spec.filesystem, machine),
        *choose.missing_layout(spec.layout, machine),
    )


def _elsewhere(spec: StackSpec) -> str:
    """What would make a stack possible that its machine cannot build."""
    others = [name for name in choose.PREFERRED if name != spec.machine.type]
    able = [name for name in others if not choose.missing(spec, MachineSpec(type=name))]
    if able:
        return f"it is possible with --on {able[0]}"
    if spec.filesystem and FILESYSTEMS.get(spec.filesystem).refusal:
        return "leave it out"
    return "a kernel that has it makes it possible: --on uml --kernel FILE --modules DIRECTORY, or --on qemu"


def _unfit(cell: Cell) -> FslabError | None:
    try:
        possible.check(cell)
    except UnsupportedError as error:
        return error
    return None
