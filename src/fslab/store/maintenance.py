"""Maintains a store: finds content that fslab cannot have written, and gives PostgreSQL roles their rights.

Triggers prevent changes of trials by any role. The rights also prevent a machine of a fleet from deleting campaigns and
from assigning studies to others, and a reader from writing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Table, exists, select, text

from fslab.errors import NoSpaceError, NotStoredError, StoreError
from fslab.store import queries, rows
from fslab.store.schema import (
    BELONGING,
    VERSION_TABLE,
    campaigns,
    cells,
    fleet_assignments,
    fleet_machines,
    fleet_schedules,
    metadata,
    raw_output,
    trials,
)
from fslab.store.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedCampaign:
    """The result of reading one campaign. ``fault``: what is wrong with it, or None."""

    id: str
    trials: int
    fault: str | None


def database_faults(store: Store) -> list[str]:
    """Return what is wrong with the database itself, besides its campaigns.

    SQLite: PRAGMA integrity_check and foreign_key_check. PostgreSQL: rows of missing trials, which has no foreign keys
    for them.
    """
    with store._reading() as connection:
        if connection.dialect.name != "sqlite":
            return [fault for table in BELONGING for fault in _loose(connection, table)]
        said = [str(line) for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars()]
        loose = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    faults = [line for line in said if line != "ok"]
    return faults + [f"row {row[1]} of table {row[0]} refers to a missing row of {row[2]}" for row in loose]


def _loose(connection: Connection, table: Table) -> list[str]:
    """Return a fault for each missing trial that rows of a table refer to."""
    missing = ~exists().where(trials.c.number == table.c.trial)
    wanted = select(table.c.trial).where(missing).distinct().order_by(table.c.trial)
    return [
        f"table {table.name} refers to trial {number}, which is missing"
        for number in connection.execute(wanted).scalars()
    ]


def check_campaigns(store: Store) -> Iterator[CheckedCampaign]:
    """Read every campaign with all of its trials and the tools' output; yield the result of each."""
    with store._reading() as connection:
        ids = queries.campaign_ids(connection)
    for campaign_id in ids:
        fault, count = None, 0
        try:
            count = store.count(campaign_id)
            _read(store, campaign_id)
        except NotStoredError:  # deleted since its id was read
            continue
        except (StoreError, NoSpaceError) as error:
            fault = error.what
        yield CheckedCampaign(id=campaign_id, trials=count, fault=fault)


def _read(store: Store, campaign_id: str) -> None:
    campaign = store.campaign(campaign_id)
    store.check_cells(campaign)
    store.trials(campaign_id, known=campaign.cells)
    store.traced(campaign_id)
    wanted = select(raw_output).join(trials).join(cells).join(campaigns).where(campaigns.c.id == campaign_id)
    # One output at a time: all together may exceed the memory. Closed also after damage: it is a server's cursor.
    one = {"yield_per": 1}
    with store._reading() as connection, connection.execute(wanted, execution_options=one) as found:
        for row in found.mappings():
            rows.Outputs().of([row])


# The columns of an assignment that a machine may change: not its study, and not its machine.
_ANSWERS = ("status", "message", "epoch", "holder", "lease_until", "ended")
# The columns of a campaign that change while it is measured: not what it measures, and not on which machine.
_PROGRESS = ("status", "trials", "settings")
_NOT_MEASURED = (fleet_assignments.name, fleet_machines.name, fleet_schedules.name, "deletions")


def grant(store: Store, *, measuring: str | None = None, reading: str | None = None) -> None:
    """Give existing roles the rights to measure, or to read.

    StoreError if the store is not a PostgreSQL database, if a role does not exist, or if it can then still create
    objects there: a function or an operator of the role's would be called with the rights of whoever reads the store.
    One that a role has created before is found when the store is opened (``database``).
    """
    if not store.is_shared:
        raise StoreError(
            "an SQLite store has no roles", where=store.path, hint="set the permissions of the file instead"
        )
    with store._writing() as connection:
        _run(connection, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")  # before PostgreSQL 15, all may
        for role in filter(None, (measuring, reading)):
            quoted = connection.dialect.identifier_preparer.quote_identifier(role)
            for kind in ("TABLES", "SEQUENCES"):
                _run(connection, f"REVOKE ALL ON ALL {kind} IN SCHEMA public FROM {quoted}")
            _run(connection, f"REVOKE CREATE ON SCHEMA public FROM {quoted}")
            _run(connection, f"GRANT USAGE ON SCHEMA public TO {quoted}")
            _run(connection, f"GRANT SELECT ON {', '.join(metadata.tables)}, {VERSION_TABLE} TO {quoted}")
            if role == measuring:
                _measuring(connection, quoted)
        for role in filter(None, (measuring, reading)):
            may_create = text("SELECT has_schema_privilege(:role, 'public', 'CREATE')")
            if connection.execute(may_create, {"role": role}).scalar():
                raise StoreError(
                    f"the role '{role}' can create functions, which run with the rights of whoever reads the store",
                    where=store.path,
                    hint="name a role that is no owner or member of one; as a superuser: REVOKE CREATE ON SCHEMA "
                    "public FROM PUBLIC",
                )


def _measuring(connection: Connection, role: str) -> None:
    written = [name for name in metadata.tables if name not in _NOT_MEASURED]
    _run(connection, f"GRANT INSERT ON {', '.join(written)} TO {role}")
    _run(connection, f"GRANT UPDATE ({', '.join(_PROGRESS)}) ON {campaigns.name} TO {role}")
    _run(connection, f"GRANT INSERT, UPDATE ON {fleet_machines.name} TO {role}")
    _run(connection, f"GRANT UPDATE ({', '.join(_ANSWERS)}) ON {fleet_assignments.name} TO {role}")
    _run(connection, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")


def _run(connection: Connection, statement: str) -> None:
    connection.execute(text(statement.replace(":", r"\:")))
