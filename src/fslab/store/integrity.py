"""Reads a whole store and reports content that fslab cannot have written. Changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Table, exists, select

from fslab.errors import NoSpaceError, NotStoredError, StoreError
from fslab.store import queries, rows
from fslab.store.schema import BELONGING, campaigns, cells, raw_output, trials
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
    with store._reading() as connection:
        _inflate(connection, campaign_id)


def _inflate(connection: Connection, campaign_id: str) -> None:
    """Decompress one output at a time: all together may exceed the memory."""
    wanted = select(raw_output).join(trials).join(cells).join(campaigns).where(campaigns.c.id == campaign_id)
    with connection.execute(wanted, execution_options={"yield_per": 1}) as found:
        for row in found.mappings():
            rows.Outputs().of([row])
