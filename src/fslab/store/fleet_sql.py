"""Parts of SQL statements about a fleet's assignments, for ``fleet`` and ``fleet_moves``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, insert

from fslab.store import rows
from fslab.store.fleet_values import OPEN, Assignment
from fslab.store.schema import fleet_assignments as assignments

LEASE_S = 120.0


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


def age(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return how many seconds ago a time was."""
    return func.extract("epoch", func.clock_timestamp() - column)


def lease() -> ColumnElement[Any]:
    """Return when a lease ends that begins now."""
    return func.now() + timedelta(seconds=LEASE_S)
