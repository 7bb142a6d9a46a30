"""A fleet in its store: its machines, and what each of them is to run.

All times come from the database, because the clocks of machines may differ. A process that runs an assignment holds a
lease with an epoch. After another process took the assignment over, ``fence`` refuses what the first one writes. Needs
PostgreSQL: an SQLite file belongs to one machine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, RowMapping, func, or_, select, update
from sqlalchemy.dialects import postgresql

from fslab.cell import Frozen
from fslab.errors import FslabError, NotStoredError, StoreError
from fslab.names import shown
from fslab.store import queries, rows
from fslab.store.database import open_engine
from fslab.store.database_errors import checked_contents
from fslab.store.fleet_sql import (
    ASSIGNMENT,
    age,
    cancelled,
    cut,
    insert_assignments,
    is_held,
    is_open,
    lease,
    to_assignment,
)
from fslab.store.fleet_values import (
    ONLINE_S,
    Assignment,
    AssignmentStatus,
    AssignmentSummary,
    FleetSchedule,
    MemberMachine,
)
from fslab.store.schema import fleet_assignments as assignments
from fslab.store.schema import fleet_machines as machines
from fslab.store.schema import fleet_schedules as schedules
from fslab.store.store import Store
from fslab.store.store_url import place_of, store_url

log = logging.getLogger("fslab.store")
Row = TypeVar("Row", bound=Frozen)
SHOWN_CHARACTERS = 80
MOST_QUEUED = 100
# Parameters of libpq; tcp_user_timeout in milliseconds, the others in seconds, except the count.
_TIMEOUTS = {
    "connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives_idle": "20", "keepalives_interval": "5",
    "keepalives_count": "3",
}  # fmt: skip


class FencedError(StoreError):
    """The assignment was cancelled or taken over by another process. Its results can no longer be written."""


def open_store(url: str, *, create: bool = False) -> Store:
    """Open the store at ``url``. An unavailable server or a lost connection is detected within a minute."""
    found = given = store_url(url)
    if given.drivername == "postgresql+psycopg":
        found = given.set(query={**_TIMEOUTS, **given.query})
    store = Store(open_engine(found, create=create))
    store.path = place_of(given)
    return store


class FleetStore:
    """The fleet's part of a store. NotStoredError if the store is not a PostgreSQL database."""

    def __init__(self, store: Store) -> None:
        if not store.is_shared:
            hint = "give its URL with --store or FSLAB_STORE: postgresql+psycopg://user@host/database"
            raise NotStoredError("a fleet needs a PostgreSQL server", where=store.path, hint=hint)
        self.store = store

    def announce(self, machine: MemberMachine) -> float:
        """Record that a machine is online. Returns how far this process's clock is ahead of the database's, in seconds.

        StoreError if another online machine has this name.
        """
        values = {**rows.plain(machine), "last_seen": func.now()}
        del values["unseen_s"]
        put = postgresql.insert(machines).values(values)
        ours_or_gone = or_(machines.c.id == machine.id, age(machines.c.last_seen) > ONLINE_S)
        put = put.on_conflict_do_update(index_elements=["name"], set_=values, where=ours_or_gone)
        with self.store._writing() as connection:
            before = time.time()
            now = connection.execute(put.returning(func.clock_timestamp())).scalar()
            if now is None:
                raise StoreError(
                    f"another machine of the fleet is named '{machine.name}'",
                    where=self.store.path,
                    hint="give this one another 'name' in its worker.toml, or wait 90 s if it was just restarted",
                )
            return (before + time.time()) / 2 - float(now.timestamp())

    def leave(self, machine: MemberMachine) -> None:
        """Record that a machine is offline."""
        own = update(machines).where(machines.c.name == machine.name, machines.c.id == machine.id)
        self._changed(own.values(last_seen=func.now() - timedelta(seconds=ONLINE_S), running=None))

    def now(self) -> datetime:
        """Return the time of the database's clock (UTC)."""
        with self.store._reading() as connection:
            found: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return found.astimezone(UTC)

    def machines(self) -> list[MemberMachine]:
        """Return all machines ever announced and not removed, sorted by name."""
        own = machines.c
        texts = map(cut, (own.labels, own.facts, own.running))
        wanted = select(own.name, own.id, own.version, *texts, age(own.last_seen).label("unseen_s"))
        with self.store._reading() as connection:
            found = connection.execute(wanted.order_by(own.name)).mappings().all()
        return self._valid(MemberMachine, found, documents=("labels", "facts"))

    def _valid(
        self, kind: type[Row], found: Sequence[RowMapping], *, documents: Collection[str] = ()
    ) -> list[Row]:
        """Return what these rows say. One that fslab did not write is left out with a warning: any machine can write
        rows of its own, and one must not keep the others from being used. ``documents``: columns with JSON texts."""
        valid: list[Row] = []
        for row in found:
            what = shown(str(row.get("name") or row.get("campaign")))[:SHOWN_CHARACTERS]
            try:
                with checked_contents(f"{self.store.path}: {what}"):
                    parsed = {key: rows.from_json(row[key]) for key in documents}
                    valid.append(kind(**{key: row[key] for key in kind.model_fields} | parsed))
            except StoreError as error:
                log.warning("left out: %s: %s", error.where, error.what)
        return valid

    def forget(self, name: str) -> bool:
        """Remove an offline machine; its results stay. Returns whether such a machine existed and was offline."""
        gone = machines.delete().where(machines.c.name == name, age(machines.c.last_seen) >= ONLINE_S)
        return self._changed(gone) > 0

    def _changed(self, statement: Executable) -> int:
        """Execute a statement, and return how many rows it changed."""
        with self.store._writing() as connection:
            return connection.execute(statement).rowcount

    def assign(self, new: Sequence[Assignment]) -> None:
        """Queue assignments, all or none."""
        with self.store._writing() as connection:
            insert_assignments(connection, new)

    def schedule(self, wanted: FleetSchedule) -> None:
        """Store a schedule; it replaces a schedule of the same name."""
        values = {**rows.plain(wanted), "next_run": wanted.next_run}
        put = postgresql.insert(schedules).values(values)
        self._changed(put.on_conflict_do_update(index_elements=["name"], set_=values))

    def schedules(self) -> list[FleetSchedule]:
        """Return all schedules, sorted by name."""
        with self.store._reading() as connection:
            found = connection.execute(select(schedules).order_by(schedules.c.name)).mappings().all()
        return self._valid(FleetSchedule, found)

    def unschedule(self, name: str) -> bool:
        """Remove a schedule. Runs that it started continue. Returns whether such a schedule existed."""
        return self._changed(schedules.delete().where(schedules.c.name == name)) > 0

    def start_due(self, begin: Callable[[FleetSchedule], Sequence[Assignment]]) -> bool:
        """Start the schedule that has been due for longest. Returns whether a schedule was due.

        Queues the assignments that ``begin`` returns, or stores the message of its FslabError or ValueError, or why the
        schedule cannot be read. Sets the next start in the same transaction, so that no start happens twice.
        """
        due = select(schedules, func.now().label("now")).where(schedules.c.next_run <= func.now())
        due = due.order_by(schedules.c.next_run).limit(1).with_for_update(skip_locked=True)
        with self.store._writing() as connection:
            row = connection.execute(due).mappings().first()
            if row is None:
                return False
            every_s = max(row["every_s"], 1)
            missed = (row["now"] - row["next_run"]).total_seconds() // every_s
            told: dict[str, Any] = {"next_run": row["next_run"] + timedelta(seconds=every_s * (missed + 1))}
            try:
                with checked_contents(self.store.path):
                    found = FleetSchedule(**{key: row[key] for key in FleetSchedule.model_fields})
                made = begin(found)
            except (FslabError, ValueError) as error:
                told |= {"message": rows.text(str(error))}
            else:
                insert_assignments(connection, made)
                told |= {"message": None, "last_run": made[0].run}
            connection.execute(update(schedules).where(schedules.c.name == row["name"]).values(told))
            return True

    def summaries(self, runs: int | None = None, *, run: str | None = None) -> list[AssignmentSummary]:
        """Return summaries of the assignments of the last ``runs`` runs (None: of all open runs), or of one ``run``.

        The newest run comes first; within a run, machines are sorted by name.
        """
        newest = select(assignments.c.run).group_by(assignments.c.run)
        if run is not None:
            newest = newest.where(assignments.c.run == run)
        elif runs is None:
            newest = newest.where(is_open())
        else:
            newest = newest.order_by(func.max(assignments.c.number).desc()).limit(runs)
        own = [column for column in ASSIGNMENT if column.key in AssignmentSummary.model_fields]
        wanted = select(
            *own,
            assignments.c.study["file"].as_string().label("file"),
            queries.trials_of(assignments.c.campaign),
        ).where(assignments.c.run.in_(newest))
        wanted = wanted.order_by(assignments.c.number.desc())
        with self.store._reading() as connection:
            found = self._valid(AssignmentSummary, connection.execute(wanted).mappings().all())
        order = {run: place for place, run in enumerate(dict.fromkeys(each.run for each in found))}
        return sorted(found, key=lambda each: (order[each.run], each.machine))

    def queue(self, machine: str, skip: int = 0) -> list[str]:
        """Return the ids of a machine's open assignments, oldest first, without the first ``skip``; at most
        ``MOST_QUEUED``."""
        wanted = select(assignments.c.id).where(assignments.c.machine == machine, is_open())
        with self.store._reading() as connection:
            found = connection.execute(wanted.order_by(assignments.c.number).offset(skip).limit(MOST_QUEUED))
            return list(found.scalars())

    def take(self, assignment_id: str, holder: MemberMachine) -> Assignment | None:
        """Take an assignment of this machine. This increments its epoch, so a previous holder can no longer write.

        The current holder can take it again. Returns None if the assignment is final, belongs to another machine, or
        is held by another process with a valid lease: none ends later than one that begins now, unless the database's
        clock was set back.
        """
        mine = or_(
            assignments.c.holder.is_(None),
            assignments.c.holder == holder.id,
            ~assignments.c.lease_until.between(func.clock_timestamp(), lease()),
        )
        taken = (
            update(assignments)
            .where(assignments.c.id == assignment_id, assignments.c.machine == holder.name, is_open(), mine)
            .values(
                holder=holder.id,
                epoch=assignments.c.epoch + 1,
                status=AssignmentStatus.RUNNING.value,
                lease_until=lease(),
            )
            .returning(*ASSIGNMENT)
        )
        with self.store._writing() as connection:
            row = connection.execute(taken).mappings().first()
            with checked_contents(self.store.path):
                return None if row is None else to_assignment(row)

    def renew(self, held: Assignment) -> bool:
        """Renew a lease. Returns False if the assignment was cancelled or taken over."""
        return self._changed(update(assignments).where(is_held(held)).values(lease_until=lease())) > 0

    def end(self, held: Assignment, status: AssignmentStatus, message: str | None = None) -> bool:
        """Store how an assignment ended. Returns False if it was cancelled or taken over before."""
        said = None if message is None else rows.text(message)
        ended = update(assignments).where(is_held(held)).values(status=status.value, message=said)
        return self._changed(ended.values(lease_until=None, ended=func.now())) > 0

    def cancel(self, run: str) -> int:
        """Cancel the open assignments of a run. Returns their number."""
        return self._changed(cancelled(assignments.c.run == run))

    def fence(self, held: Assignment) -> Callable[[Connection], None]:
        """Return a check for each transaction that writes results. It raises FencedError if the lease was lost."""

        def check(connection: Connection) -> None:
            wanted = select(assignments.c.id).where(is_held(held)).with_for_update(read=True)
            if connection.execute(wanted).first() is None:
                what = f"assignment '{held.id}' was cancelled or taken over"
                raise FencedError(what, where=self.store.path)

        return check
