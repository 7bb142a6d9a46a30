"""The SQL statements of the store. Each runs on the caller's connection, in the caller's transaction."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    case,
    delete,
    func,
    insert,
    null,
    select,
    type_coerce,
    update,
)

from fslab.cell import Cell
from fslab.errors import AmbiguousNameError, NotStoredError, StoreError, nearest
from fslab.store import bulk, read_limits, rows
from fslab.store.campaign import EARLIEST, Campaign, CampaignEntry
from fslab.store.fleet_sql import cancelled, is_open
from fslab.store.schema import (
    campaigns,
    cell_numbers,
    cells,
    deletions,
    fleet_assignments,
    metrics,
    probes,
    raw_output,
    traced,
    trials,
    warnings,
)
from fslab.trial_record import TrialRecord
from fslab.units import counted as counted_words

Grouped = dict[int, list[RowMapping]]
LAST = "last"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._+-]{0,127}")
_BACK = re.compile(r"last(?:~(\d{1,6}))?")


def campaign_ids(connection: Connection) -> list[str]:
    """Return the ids of all campaigns, oldest first: copied ones are stored in another order."""
    return list(connection.execute(select(campaigns.c.id).order_by(*_oldest_first())).scalars())


def _oldest_first() -> tuple[ColumnElement[Any], ...]:
    """Return by what campaigns are ordered. A date in the future, or before ``EARLIEST``, says nothing, because
    a clock was wrong: it counts as that of the newest one that was stored before. Otherwise ``last`` would mean it
    until that date, or never.
    """
    known = case((campaigns.c.created.between(EARLIEST, datetime.now(UTC)), campaigns.c.created))
    before = func.max(known).over(order_by=campaigns.c.number)
    first = type_coerce(datetime.fromtimestamp(0, UTC), campaigns.c.created.type)
    return func.coalesce(known, before, first), campaigns.c.number


def insert_campaign(connection: Connection, campaign: Campaign) -> None:
    number = _inserted(connection, campaigns, rows.campaign_row(campaign))
    dumped = [rows.cell_row(cell, position, number) for position, cell in enumerate(campaign.cells)]
    if dumped:
        connection.execute(insert(cells), dumped)


def update_campaign(connection: Connection, campaign_id: str, **values: object) -> bool:
    """Set columns of a campaign. Returns whether the campaign exists."""
    change = update(campaigns).where(campaigns.c.id == campaign_id).values(values)
    return connection.execute(change).rowcount > 0


def update_plan(connection: Connection, campaign: Campaign) -> bool:
    """Set how often a campaign repeats its cells. Returns whether the campaign exists."""
    row = rows.campaign_row(campaign)
    return update_campaign(connection, campaign.id, trials=row["trials"], settings=row["settings"])


def named(connection: Connection) -> dict[str, str]:
    """Return the ids of the campaigns that have a name, by name."""
    wanted = select(campaigns.c.name, campaigns.c.id).where(campaigns.c.name.is_not(None))
    return {str(name): str(found) for name, found in connection.execute(wanted)}


def delete_campaign(connection: Connection, campaign_id: str) -> None:
    """Delete a campaign and everything that belongs to it. The triggers allow this only with a row in ``deletions``.

    A machine of a fleet that measures it would send it again: its assignment is cancelled first, which also waits for a
    machine that is just sending.
    """
    connection.execute(cancelled(fleet_assignments.c.campaign == campaign_id, "its campaign was deleted"))
    number = connection.execute(select(campaigns.c.number).where(campaigns.c.id == campaign_id)).scalar_one()
    connection.execute(insert(deletions).values(campaign=number))
    own_cells = select(cells.c.number).where(cells.c.campaign == number)
    own_trials = select(trials.c.number).where(trials.c.cell.in_(own_cells))
    for table in (metrics, probes, warnings, raw_output):
        connection.execute(delete(table).where(table.c.trial.in_(own_trials)))
    connection.execute(delete(trials).where(trials.c.cell.in_(own_cells)))
    connection.execute(delete(traced).where(traced.c.campaign == number))
    connection.execute(delete(cells).where(cells.c.campaign == number))
    connection.execute(delete(deletions).where(deletions.c.campaign == number))
    connection.execute(delete(campaigns).where(campaigns.c.number == number))


def select_campaigns(connection: Connection, campaign_id: str | None = None) -> list[Campaign]:
    """Return all campaigns with their cells, oldest first; with ``campaign_id`` only this one.

    ValueError if one of them is larger than ``read_limits.CAMPAIGN_LIMIT``.
    """
    read_limits.check_campaigns(connection, campaign_id)
    wanted = select(campaigns).order_by(*_oldest_first())
    planned = select(cells.c.campaign, cells.c.spec).order_by(cells.c.campaign, cells.c.position)
    if campaign_id is not None:
        wanted = wanted.where(campaigns.c.id == campaign_id)
        planned = planned.where(cells.c.number.in_(cell_numbers(campaign_id)))
    by_campaign: dict[int, list[Cell]] = defaultdict(list)
    for number, spec in connection.execute(planned):
        by_campaign[number].append(rows.to_cell(spec))
    found = connection.execute(wanted).mappings()
    return [rows.to_campaign(row, by_campaign[row["number"]]) for row in found]


def select_entry(connection: Connection, campaign_id: str) -> CampaignEntry:
    """Return what identifies the campaign with this id, without what has to be understood to be read."""
    columns = (campaigns.c.id, campaigns.c.name, campaigns.c.study_title, campaigns.c.status)
    found = connection.execute(select(*columns).where(campaigns.c.id == campaign_id)).one()
    return CampaignEntry(*found)


def cell_number(connection: Connection, campaign_id: str, cell_id: str) -> int | None:
    """Return the row number of a cell; None if the campaign has no such cell."""
    wanted = select(cells.c.number).join(campaigns)
    return connection.execute(
        wanted.where(campaigns.c.id == campaign_id).where(cells.c.id == cell_id)
    ).scalar_one_or_none()


def has_trial(connection: Connection, cell: int, block: int) -> bool:
    wanted = select(trials.c.number).where(trials.c.cell == cell).where(trials.c.block == block)
    return connection.execute(wanted).first() is not None


def insert_trial(connection: Connection, record: TrialRecord, cell: int) -> None:
    number = _inserted(connection, trials, rows.trial_row(record, cell))
    bulk.insert_rows(connection, metrics, rows.figure_rows(record.metrics, number))
    bulk.insert_rows(connection, probes, rows.figure_rows(record.probes, number))
    bulk.insert_rows(connection, warnings, rows.warning_rows(record.validity, number))
    bulk.insert_rows(connection, raw_output, rows.raw_rows(record.raw, number))


def select_trials(
    connection: Connection,
    campaign_id: str,
    *,
    raw: bool,
    only: Collection[str] | None = None,
    known: Collection[Cell] = (),
) -> list[TrialRecord]:
    """Return all trials of a campaign as they were stored, or the parts selected by ``only`` (see ``Store.trials``)."""
    read_limits.check_trials(connection, campaign_id, only)
    numbers = cell_numbers(campaign_id)
    cell_of = _cells(connection, numbers, {cell.id: cell for cell in known})
    figures = _belonging(connection, metrics, campaign_id, only)
    observed = _belonging(connection, probes, campaign_id, only)
    warned = _belonging(connection, warnings, campaign_id)
    output = _belonging(connection, raw_output, campaign_id) if raw else {}
    outputs = rows.Outputs(left_bytes=read_limits.raw_bytes())
    wanted = _trial_columns(lean=only is not None).where(trials.c.cell.in_(numbers)).order_by(trials.c.number)
    return [
        rows.to_trial(
            row,
            campaign=campaign_id,
            cell=cell_of[row["cell"]],
            metrics=figures.get(row["number"], ()),
            probes=observed.get(row["number"], ()),
            warnings=warned.get(row["number"], ()),
            raw=outputs.of(output.get(row["number"], ())),
        )
        for row in connection.execute(wanted).mappings().all()
    ]


def count_trials(connection: Connection, campaign_id: str) -> int:
    wanted = select(func.count()).select_from(trials).where(trials.c.cell.in_(cell_numbers(campaign_id)))
    return connection.execute(wanted).scalar_one()


def trial_counts(connection: Connection) -> dict[str, int]:
    """Return the number of trials of each campaign that has some, by its id."""
    counted = select(campaigns.c.id, func.count()).select_from(trials).join(cells).join(campaigns)
    return {str(found): int(count) for found, count in connection.execute(counted.group_by(campaigns.c.id))}


def status_of(connection: Connection, campaign_id: str) -> str | None:
    """Return the stored status of the campaign with exactly this id; None if there is none."""
    return connection.execute(select(campaigns.c.status).where(campaigns.c.id == campaign_id)).scalar()


def is_over_in_fleet(connection: Connection, campaign_id: str) -> bool:
    """Return whether the campaign has an assignment that is neither queued nor running."""
    over = select(fleet_assignments.c.id).where(fleet_assignments.c.campaign == campaign_id, ~is_open())
    return connection.execute(over).first() is not None


def trials_of(campaign_id: ColumnElement[str]) -> ColumnElement[int]:
    """Return a column ``trials`` for another statement: the number of trials of the campaign with this id."""
    counted = select(func.count(trials.c.number)).select_from(trials).join(cells).join(campaigns)
    return counted.where(campaigns.c.id == campaign_id).scalar_subquery().label("trials")


def trial_numbers(connection: Connection, campaign_id: str) -> dict[tuple[str, int], int]:
    """Return the row number of every stored trial by its cell's id and its block, in the order of storing."""
    wanted = select(cells.c.id, trials.c.block, trials.c.number).join_from(trials, cells).join(campaigns)
    found = connection.execute(wanted.where(campaigns.c.id == campaign_id).order_by(trials.c.number))
    return {(cell, block): number for cell, block, number in found}


def insert_traced(connection: Connection, record: TrialRecord) -> bool:
    """Insert a traced trial without the tools' output. Returns whether the campaign exists."""
    wanted = select(campaigns.c.number).where(campaigns.c.id == record.key.campaign)
    number = connection.execute(wanted).scalar_one_or_none()
    if number is None:
        return False
    document = rows.plain(record.model_copy(update={"raw": {}}))
    _inserted(connection, traced, {"campaign": number, "cell": record.cell.id, "record": document})
    return True


def has_traced(connection: Connection, record: TrialRecord) -> bool:
    """Return whether exactly this traced trial is stored."""
    wanted = select(traced.c.record).join(campaigns).where(campaigns.c.id == record.key.campaign)
    document = rows.plain(record.model_copy(update={"raw": {}}))
    return document in connection.execute(wanted.where(traced.c.cell == record.cell.id)).scalars()


def select_traced(connection: Connection, campaign_id: str) -> list[TrialRecord]:
    """Return the traced trials of a campaign, oldest first."""
    read_limits.check_traced(connection, campaign_id)
    wanted = select(traced.c.record).join(campaigns).where(campaigns.c.id == campaign_id)
    found = connection.execute(wanted.order_by(traced.c.number)).scalars()
    return [TrialRecord.model_validate(document) for document in found]


def count_traced(connection: Connection, campaign_id: str) -> int:
    wanted = select(func.count(traced.c.number)).join(campaigns).where(campaigns.c.id == campaign_id)
    return connection.execute(wanted).scalar_one()


def _cells(connection: Connection, numbers: Select[tuple[int]], known: Mapping[str, Cell]) -> dict[int, Cell]:
    """Return the cells by row number. Reads only those that are not in ``known``."""
    ids = connection.execute(select(cells.c.number, cells.c.id).where(cells.c.number.in_(numbers))).all()
    found = {number: known[cell] for number, cell in ids if cell in known}
    if len(found) < len(ids):
        wanted = select(cells.c.number, cells.c.spec).where(cells.c.number.in_(numbers))
        specs = connection.execute(wanted).all()
        found.update({number: rows.to_cell(spec) for number, spec in specs if number not in found})
    return found


def _trial_columns(*, lean: bool) -> Select[Any]:
    """Select whole rows; if ``lean``, provenance only of block 0: it is long, and alike in all blocks of a cell."""
    if not lean:
        return select(trials)
    first = case((trials.c.block == 0, trials.c.provenance), else_=null())
    others = [column for column in trials.c if column.name != "provenance"]
    return select(*others, type_coerce(first, trials.c.provenance.type).label("provenance"))


def _belonging(
    connection: Connection, table: Table, campaign_id: str, only: Collection[str] | None = None
) -> Grouped:
    """Return the rows of a table that belong to trials, by trial, in their order. ``only``: rows with these names."""
    order = table.c.position if "position" in table.c else table.c.name
    wanted = select(table).join(trials).where(trials.c.cell.in_(cell_numbers(campaign_id))).order_by(order)
    if only is not None:
        wanted = wanted.where(table.c.name.in_(sorted(only)))
    grouped: Grouped = defaultdict(list)
    for row in connection.execute(wanted).mappings().all():
        grouped[row["trial"]].append(row)
    return grouped


def _inserted(connection: Connection, table: Table, row: rows.Row) -> int:
    key = connection.execute(insert(table).values(row)).inserted_primary_key
    if key is None:  # happens only if a statement inserts many rows
        raise RuntimeError(f"no key for the new row of {table.name}")
    return int(key[0])


def check_name(connection: Connection, name: str | None, campaign_id: str, place: str) -> None:
    """Raise StoreError if the name could be mistaken for an id, or if another campaign has it.

    ``place``: the store, for messages.
    """
    if name is None:
        return
    if not _NAME.fullmatch(name) or _BACK.fullmatch(name):
        what = (
            f"invalid name '{name}': use at most 128 of A-Z, a-z, 0-9, '.', '_', '+' and '-', begin with a letter, "
            "and do not use 'last' or 'last~1'"
        )
        raise StoreError(what, where=place)
    if (other := named(connection).get(name, campaign_id)) != campaign_id:
        hint = f"choose another name, or remove that one: fslab name {other} ''"
        raise StoreError(f"campaign '{other}' has the name '{name}' already", where=place, hint=hint)


def resolved(connection: Connection, wanted: str, place: str) -> str:
    """Return the id of the campaign that ``wanted`` means.

    NotStoredError if there is none, AmbiguousNameError if ``wanted`` is the beginning of several ids.
    """
    ids, names = campaign_ids(connection), named(connection)
    if not ids:
        raise NotStoredError(
            "the store has no campaign yet", where=place, hint="run a study: fslab run quick"
        )
    # First: fslab gives no campaign such an id or name, but another program that writes to the store can.
    if back := _BACK.fullmatch(wanted):
        steps = int(back[1] or 0)
        if steps >= len(ids):
            what = f"no campaign '{wanted}': the store has {counted_words(len(ids), 'campaign')}"
            raise NotStoredError(what, where=place, hint="fslab results --list lists them")
        return ids[-1 - steps]
    if wanted in ids:
        return wanted
    if wanted in names:
        return names[wanted]
    fitting = [known for known in ids if wanted and known.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        hint = f"write more of the id: {', '.join(fitting)}"
        raise AmbiguousNameError(f"'{wanted}' matches {len(fitting)} campaigns", where=place, hint=hint)
    raise NotStoredError(f"no campaign '{wanted}'", where=place, hint=nearest(wanted, [*ids, *names]))
