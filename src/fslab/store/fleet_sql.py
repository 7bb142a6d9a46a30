"""Parts of SQL statements about a fleet's assignments, for ``fleet`` and ``fleet_moves``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, Update, and_, case, cast, func, insert, update

from fslab.store import rows
from fslab.store.fleet_values import OPEN, Assignment, AssignmentStatus
from fslab.store.schema import fleet_assignments as assignments

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
