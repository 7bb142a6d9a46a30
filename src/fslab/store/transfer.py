"""Copies campaigns from one store to another, trial by trial, and compares the copies with the originals.

The next copy completes an interrupted one: trials that exist already are compared and not changed. Copies rows between
any two databases; ``rows`` defines what they mean.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from fslab.errors import StoreError
from fslab.store import bulk, queries
from fslab.store.campaign import Campaign
from fslab.store.rows import Row
from fslab.store.schema import campaigns, cells, metrics, probes, raw_output, traced, trials, warnings
from fslab.store.store import Store

PIECE = 500  # trials in one transaction
_BELONGING = (metrics, probes, warnings, raw_output)
_Key = tuple[str, int]  # id of a cell, block


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedCampaign:
    """The result of a copy: ``new`` trials were copied now, ``present`` trials existed already."""

    id: str
    new: int
    present: int


@dataclass(kw_only=True, slots=True)
class _Trial:
    """The rows of one trial, without row numbers, which differ between databases."""

    key: _Key
    row: Row
    belonging: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))

    def digest(self) -> str:
        """Return the SHA-256 of everything that is stored of the trial."""
        rows = {name: sorted(rows, key=_first) for name, rows in self.belonging.items()}
        content = json.dumps([self.key, self.row, rows], sort_keys=True, default=_plain)
        return hashlib.sha256(content.encode()).hexdigest()


def copy_campaign(
    source: Store,
    target: Store,
    campaign: Campaign,
    progress: Callable[[int, int], object] = lambda *_: None,
    *,
    fence: Callable[[Connection], object] = lambda _: None,
    only_new: bool = False,
) -> CopiedCampaign:
    """Copy one campaign with its trials, the tools' output and traced trials; name and note only with the first copy.

    ``progress`` gets the number of trials done and in total, after each transaction. ``fence`` is called first in each
    transaction; it raises if nothing may be written any more. ``only_new``: do not compare trials that exist already.

    StoreError if ``target`` has another campaign with this id, or a trial that differs.
    """
    with target._writing() as writer:
        fence(writer)
    _begin(target, campaign)
    with source._reading() as reader:
        places = _places(reader, campaign.id)
        with target._reading() as connection:
            there = _places(connection, campaign.id)
        present = len(there)
        numbers = [number for key, number in places.items() if not only_new or key not in there]
        for done in range(0, len(numbers), PIECE):
            sent = _load(reader, numbers[done : done + PIECE])
            with target._writing() as writer:
                fence(writer)
                there |= _insert(writer, [trial for trial in sent if trial.key not in there], campaign.id)
                _compare(writer, sent, there, target.path)
            progress(min(done + PIECE, len(numbers)), len(numbers))
        documents = _traced(reader, campaign.id)
    with target._writing() as writer:
        fence(writer)
        _finish(writer, campaign, documents)
    return CopiedCampaign(id=campaign.id, new=len(there) - present, present=present)


def _begin(target: Store, campaign: Campaign) -> None:
    if not target.has(campaign.id):
        target.create_campaign(campaign)
        return
    known = target.campaign(campaign.id)
    if (known.cells, known.seed, known.created) != (campaign.cells, campaign.seed, campaign.created):
        raise StoreError(f"has a different campaign with the id '{campaign.id}'", where=target.path)


def _compare(writer: Connection, sent: Sequence[_Trial], there: Mapping[_Key, int], place: str) -> None:
    arrived = {trial.key: trial.digest() for trial in _load(writer, [there[trial.key] for trial in sent])}
    for trial in sent:
        if arrived[trial.key] != trial.digest():
            cell, block = trial.key
            raise StoreError(f"trial {block} of cell {cell} differs from the one to copy", where=place)


def _insert(writer: Connection, new: Sequence[_Trial], campaign_id: str) -> dict[_Key, int]:
    """Insert trials and return their row numbers."""
    if not new:
        return {}
    wanted = select(cells.c.id, cells.c.number).join(campaigns).where(campaigns.c.id == campaign_id)
    numbers = {row.id: row.number for row in writer.execute(wanted)}
    made = writer.execute(
        insert(trials).returning(trials.c.number, sort_by_parameter_order=True),
        [{**trial.row, "cell": numbers[trial.key[0]]} for trial in new],
    ).scalars()
    places = dict(zip((trial.key for trial in new), made, strict=True))
    for table in _BELONGING:
        names = table.c.keys()
        rows = [
            dict(zip(names, (places[trial.key], *values), strict=True))
            for trial in new
            for values in trial.belonging.get(table.name, ())
        ]
        bulk.insert_rows(writer, table, rows)
    return places


def _places(connection: Connection, campaign_id: str) -> dict[_Key, int]:
    """Return the row numbers of a campaign's trials, in the order in which they were stored."""
    wanted = select(cells.c.id, trials.c.block, trials.c.number).join_from(trials, cells).join(campaigns)
    found = connection.execute(wanted.where(campaigns.c.id == campaign_id).order_by(trials.c.number))
    return {(cell, block): number for cell, block, number in found}


def _load(connection: Connection, numbers: Sequence[int]) -> list[_Trial]:
    wanted = select(cells.c.id, trials).join_from(trials, cells).where(trials.c.number.in_(numbers))
    found: dict[int, _Trial] = {}
    for cell, *values in connection.execute(wanted.order_by(trials.c.number)):
        row = dict(zip(trials.c.keys(), values, strict=True))
        own = {name: value for name, value in row.items() if name not in {"number", "cell"}}
        found[row["number"]] = _Trial(key=(cell, row["block"]), row=own)
    for table in _BELONGING:
        within = select(table).where(table.c.trial.in_(numbers))
        for number, *values in connection.execute(within):
            found[number].belonging[table.name].append(tuple(values))
    return list(found.values())


def _traced(connection: Connection, campaign_id: str) -> list[Row]:
    wanted = select(traced.c.cell, traced.c.record).join(campaigns).where(campaigns.c.id == campaign_id)
    return [dict(row) for row in connection.execute(wanted.order_by(traced.c.number)).mappings()]


def _finish(writer: Connection, campaign: Campaign, documents: Sequence[Row]) -> None:
    """Write what may have changed since an earlier copy: traced trials, the status, and the planned repetitions."""
    there = _traced(writer, campaign.id)
    number = writer.execute(select(campaigns.c.number).where(campaigns.c.id == campaign.id)).scalar_one()
    new = [{**row, "campaign": number} for row in documents if row not in there]
    if new:
        writer.execute(insert(traced), new)
    queries.update_plan(writer, campaign)
    queries.update_status(writer, campaign.id, campaign.status)


def _first(row: tuple[Any, ...]) -> Any:
    """Return the row's name or position, which is unique within a trial and a table."""
    return row[0]


def _plain(value: Any) -> str:
    match value:
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat()
    raise TypeError(f"no value of a store: {value!r}")
