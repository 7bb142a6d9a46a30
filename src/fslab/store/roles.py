"""The rights of PostgreSQL roles in a store: to measure, or only to read.

Triggers prevent changes of trials by any role. These rights also prevent a machine of a fleet from deleting campaigns
and from assigning studies to others, and a reader from writing.
"""

from sqlalchemy import Connection, text

from fslab.errors import StoreError
from fslab.store.schema import (
    VERSION_TABLE,
    campaigns,
    fleet_assignments,
    fleet_machines,
    fleet_schedules,
    metadata,
)
from fslab.store.store import Store

# The columns of an assignment that a machine may change: not its study, and not its machine.
_ANSWERS = ("status", "message", "epoch", "holder", "lease_until", "ended")
# The columns of a campaign that change while it is measured: not what it measures, and not on which machine.
_PROGRESS = ("status", "trials", "settings")
_NOT_MEASURED = (fleet_assignments.name, fleet_machines.name, fleet_schedules.name, "deletions")


def grant(store: Store, *, measuring: str | None = None, reading: str | None = None) -> None:
    """Give existing roles the rights to measure, or to read.

    StoreError if the store is not a PostgreSQL database, if a role does not exist, or if it can then still create
    objects there: a function or an operator of the role's would be called with the rights of whoever reads the store.
    """
    if not store.is_shared:
        raise StoreError(
            "an SQLite store has no roles", where=store.path, hint="set the permissions of the file instead"
        )
    with store._writing() as connection:
        _run(connection, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")  # before PostgreSQL 15, all may
        for role in filter(None, (measuring, reading)):
            quoted = connection.dialect.identifier_preparer.quote_identifier(role)
            _clear(connection, quoted)
            _run(connection, f"GRANT SELECT ON {_names(list(metadata.tables))}, {VERSION_TABLE} TO {quoted}")
        if measuring is not None:
            _measuring(connection, connection.dialect.identifier_preparer.quote_identifier(measuring))
        for role in filter(None, (measuring, reading)):
            may_create = text("SELECT has_schema_privilege(:role, 'public', 'CREATE')")
            if connection.execute(may_create, {"role": role}).scalar():
                raise StoreError(
                    f"the role '{role}' can create functions, which run with the rights of whoever reads the store",
                    where=store.path,
                    hint="name a role that is no owner or member of one; as a superuser: REVOKE CREATE ON SCHEMA "
                    "public FROM PUBLIC",
                )


def _clear(connection: Connection, role: str) -> None:
    for kind in ("TABLES", "SEQUENCES"):
        _run(connection, f"REVOKE ALL ON ALL {kind} IN SCHEMA public FROM {role}")
    _run(connection, f"REVOKE CREATE ON SCHEMA public FROM {role}")
    _run(connection, f"GRANT USAGE ON SCHEMA public TO {role}")


def _measuring(connection: Connection, role: str) -> None:
    written = [name for name in metadata.tables if name not in _NOT_MEASURED]
    _run(connection, f"GRANT INSERT ON {_names(written)} TO {role}")
    _run(connection, f"GRANT UPDATE ({', '.join(_PROGRESS)}) ON {campaigns.name} TO {role}")
    _run(connection, f"GRANT INSERT, UPDATE ON {fleet_machines.name} TO {role}")
    _run(connection, f"GRANT UPDATE ({', '.join(_ANSWERS)}) ON {fleet_assignments.name} TO {role}")
    _run(connection, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")


def _names(tables: list[str]) -> str:
    return ", ".join(tables)


def _run(connection: Connection, statement: str) -> None:
    connection.execute(text(statement.replace(":", r"\:")))
