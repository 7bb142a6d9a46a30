"""SQL about a fleet's assignments: parts of statements, and what becomes of the assignments of machines that are gone.

A share (some of the study's workloads, ``--spread``) starts again on another machine, as a campaign of its own: a
comparison has the trials of one machine only, so that nothing of the old campaign can be continued elsewhere. The old
assignment is final, which fences off the lost machine. A whole study (``--each``) has nowhere to go: it is about that
machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Text,
    Update,
    and_,
    case,
    cast,
    func,
    insert,
    select,
    update,
)

from fslab.errors import StoreError
from fslab.store import rows
from fslab.store.database_errors import checked_contents
from fslab.store.fleet_values import ONLINE_S, OPEN, Assignment, AssignmentStatus
from fslab.store.schema import fleet_assignments as assignments
from fslab.store.schema import fleet_machines as machines
from fslab.units import format_duration

if TYPE_CHECKING:
    from fslab.store.fleet import FleetStore

LEASE_S = 120.0


def cut(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Return the beginning of a text that any machine can write, or of a JSON document as its text: it can have a
    gigabyte, and a document that cannot be parsed would make its whole table unreadable."""
    return func.left(cast(column, Text), rows.LONGEST_TEXT).label(column.key)


# The columns of an assignment that are read.
ASSIGNMENT = tuple(
    cut(each) if each is assignments.c.message else each
    for each in assignments.c
    if each.name in Assignment.model_fields
)


def insert_assignments(connection: Connection, new: Sequence[Assignment]) -> None:
    made = [
        {**rows.plain(each), "created": each.created, "ended": None, "status": each.status.value}
        for each in new
    ]
    connection.execute(insert(assignments), made)


def to_assignment(row: Any) -> Assignment:
    return Assignment(**{key: row[key] for key in Assignment.model_fields})


def is_open() -> ColumnElement[bool]:
    """Select assignments that are queued or running."""
    return assignments.c.status.in_([each.value for each in OPEN])


def is_held(held: Assignment) -> ColumnElement[bool]:
    """Select the assignment if it still is open and has this epoch."""
    return and_(assignments.c.id == held.id, assignments.c.epoch == held.epoch, is_open())


def cancelled(selected: ColumnElement[bool], message: str | None = None) -> Update:
    """Cancel those of the selected assignments that are open: their machines can write nothing more."""
    over = update(assignments).where(selected, is_open())
    status = AssignmentStatus.CANCELLED.value
    return over.values(status=status, message=message, lease_until=None, ended=func.now())


def age(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return how many seconds ago a time was.

    A time in the future, from before the database's clock was set back, counts as the same time ago. One that no clock
    shows, such as ``infinity``, was made up: it counts as 1970.
    """
    now = func.clock_timestamp()
    apart = func.abs(func.extract("epoch", now - column))
    return case((func.isfinite(column), apart), else_=func.extract("epoch", now))


def lease() -> ColumnElement[Any]:
    """Return when a lease ends that begins now: not when the transaction began, which may have waited for another."""
    return func.clock_timestamp() + timedelta(seconds=LEASE_S)


_LONGEST_NOTE = 2000


def give_up(fleet: FleetStore, after_s: float | None) -> list[str]:
    """Move or end the open assignments of machines that were removed, or not seen for ``after_s`` seconds.

    None: only those of machines that were removed. Returns a line for each.
    """
    there = select(machines.c.name)
    if after_s is not None:
        there = there.where(age(machines.c.last_seen) <= after_s)
    lost = (
        select(*ASSIGNMENT)
        .where(is_open(), assignments.c.machine.not_in(there))
        .order_by(assignments.c.number)
    )
    with fleet.store._writing() as connection:
        found = connection.execute(lost.with_for_update()).mappings().all()
        return [_move(connection, each, _reason(connection, each["machine"])) for each in found]


def _reason(connection: Connection, machine: str) -> str:
    wanted = select(age(machines.c.last_seen)).where(machines.c.name == machine)
    unseen_s = connection.execute(wanted).scalar()
    if unseen_s is None:
        return "the machine was removed"
    return f"the machine was not seen for {format_duration(float(unseen_s))}"


def _move(connection: Connection, row: RowMapping, reason: str) -> str:
    """End an assignment; if it is a share, assign it to another machine of its run. Returns what to tell."""
    try:
        with checked_contents(row["id"]):
            old = to_assignment(row)
    except StoreError as error:
        return _ended(connection, row["id"], AssignmentStatus.FAILED, f"{reason}; {error.what}")
    target = _another(connection, old) if old.study.workloads else None
    status, message = AssignmentStatus.FAILED, reason
    if target is not None:
        new = _anew(old, target, _assigned(connection, old.run)[target])
        insert_assignments(connection, [new])
        status, message = AssignmentStatus.MOVED, f"{reason}: starts again on {target}"
    elif old.study.workloads:
        message = f"{reason}, and no other machine of the run is online"
    return _ended(connection, old.id, status, message)


def _ended(connection: Connection, identity: str, status: AssignmentStatus, message: str) -> str:
    over = update(assignments).where(assignments.c.id == identity)
    connection.execute(over.values(status=status.value, message=message, lease_until=None, ended=func.now()))
    return f"{identity}: {message}"


def _another(connection: Connection, old: Assignment) -> str | None:
    """Return the online machine of the same run and version with the fewest assignments of it; None if there is none.

    Only these machines were selected for the run.
    """
    selected = _assigned(connection, old.run)
    wanted = select(machines.c.name).where(
        machines.c.name.in_(selected),
        machines.c.name != old.machine,
        machines.c.version == old.study.version,
        age(machines.c.last_seen) < ONLINE_S,
    )
    online = sorted(connection.execute(wanted).scalars())
    return min(online, key=selected.__getitem__, default=None)


def _assigned(connection: Connection, run: str) -> Mapping[str, int]:
    """Return how many assignments of a run each machine has or had."""
    wanted = select(assignments.c.machine, func.count()).where(assignments.c.run == run)
    return {row[0]: row[1] for row in connection.execute(wanted.group_by(assignments.c.machine))}


def _anew(old: Assignment, machine: str, count: int) -> Assignment:
    """Return the share as a new assignment. Its campaign has no name: names are those of the first assignments."""
    # No first assignment has such an id: RUN-MACHINE-2 could be that of another machine.
    identity = f"{old.run}.{count + 1}-{machine}"
    notes: Sequence[str] = [
        each for each in (old.study.note, f"moved from {old.machine} ({old.campaign})") if each
    ]
    study = old.study.model_copy(update={"name": None, "note": rows.text("; ".join(notes))[:_LONGEST_NOTE]})
    return Assignment(
        id=identity, run=old.run, schedule=old.schedule, machine=machine, campaign=identity, study=study,
        created=old.created,
    )  # fmt: skip
