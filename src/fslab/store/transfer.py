"""Copies campaigns from one store to another, trial by trial, and compares the copies with the originals.

The next copy completes an interrupted one: trials that exist already are compared and not changed. Copies rows between
any two databases; ``rows`` defines what they mean.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from fslab.errors import NotStoredError, StoreError
from fslab.store import bulk, queries
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.rows import Row
from fslab.store.schema import BELONGING, campaigns, cells, raw_output, traced, trials
from fslab.store.store import Store

# In one transaction: trials, and output of their tools (one can have more).
PIECE, PIECE_BYTES = 500, 64 << 20
_Key = tuple[str, int]  # id of a cell, block


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedCampaign:
    """The result of a copy: ``new`` trials were copied now, ``present`` trials existed already; ``foreign`` of them are
    not in the source. ``name_taken``: the campaign's name, if it was left out because another campaign of the target
    has it."""

    id: str
    new: int
    present: int
    foreign: int = 0
    name_taken: str | None = None


@dataclass(kw_only=True, slots=True)
class _Trial:
    """The rows of one trial. ``row``: without its number and its cell's, which differ between databases.
    ``belonging``: by table; each row begins with the trial's number. Sorted by their keys, texts by code point."""

    key: _Key
    row: Row
    belonging: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))

    def digest(self) -> str:
        """Return the SHA-256 of everything that is stored of the trial."""
        rows = {name: [row[1:] for row in rows] for name, rows in self.belonging.items()}
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

    A copy is never set back: it keeps its plan and status if it is further than the original (``_later``).

    ``progress`` gets the number of trials done and in total, after each transaction. ``fence`` is called first in each
    transaction; it raises if nothing may be written any more. ``only_new``: do not compare trials that exist already.

    StoreError if ``target`` has another campaign with this id, or a trial that differs.
    """
    name_taken = _begin(target, campaign, fence)
    new = 0
    with source._reading() as reader:
        places = queries.trial_numbers(reader, campaign.id)
        found = queries.select_campaigns(reader, campaign.id)  # as it was when it had these trials
        if not found:
            raise NotStoredError(
                f"no campaign '{campaign.id}'", where=source.path, hint="it was deleted meanwhile"
            )
        with target._reading() as connection:
            there = queries.trial_numbers(connection, campaign.id)
            numbered = select(cells.c.id, cells.c.number).join(campaigns).where(campaigns.c.id == campaign.id)
            cell_numbers = {row.id: row.number for row in connection.execute(numbered)}
        numbers = [number for key, number in places.items() if not only_new or key not in there]
        done = 0
        # Closed before the reader, whatever happens: its thread uses the reader.
        with closing(_loaded(reader, numbers)) as pieces:
            for sent in pieces:
                with target._writing() as writer:
                    fence(writer)
                    new += _write(writer, sent, campaign.id, cell_numbers, target.path)
                done += len(sent)
                progress(done, len(numbers))
        documents = _traced(reader, campaign.id)
    with target._writing() as writer:
        fence(writer)
        _finish(writer, found[0], documents, len(places))
    foreign = len(there.keys() - places.keys())
    return CopiedCampaign(id=campaign.id, new=new, present=len(there), foreign=foreign, name_taken=name_taken)


def _begin(target: Store, campaign: Campaign, fence: Callable[[Connection], object]) -> str | None:
    """Create the campaign if it does not exist. Returns its name if it was created without it, because another campaign
    of the target has that name: machines name their campaigns independently."""
    if not target.has(campaign.id):
        with target._reading() as connection:
            taken = campaign.name in queries.named(connection)
        wanted = campaign.model_copy(update={"name": None}) if taken else campaign
        target.create_campaign(wanted, fence=fence)
        return campaign.name if taken else None
    known = target.campaign(campaign.id)
    if (known.cells, known.seed, known.created) != (campaign.cells, campaign.seed, campaign.created):
        raise StoreError(f"has a different campaign with the id '{campaign.id}'", where=target.path)
    return None


def _write(
    writer: Connection, sent: Sequence[_Trial], campaign_id: str, cell_numbers: Mapping[str, int], place: str
) -> int:
    """Insert the trials that are not there yet, and compare all of them. Returns the number of those inserted."""
    there = _places_of(writer, campaign_id, [trial.key for trial in sent], cell_numbers)
    new = [trial for trial in sent if trial.key not in there]
    there |= _insert(writer, new, cell_numbers)
    _compare(writer, sent, there, place)
    return len(new)


def _compare(writer: Connection, sent: Sequence[_Trial], there: Mapping[_Key, int], place: str) -> None:
    arrived = {trial.key: trial.digest() for trial in _load(writer, [there[trial.key] for trial in sent])}
    for trial in sent:
        if arrived[trial.key] != trial.digest():
            cell, block = trial.key
            raise StoreError(f"trial {block} of cell {cell} differs from the one to copy", where=place)


def _insert(writer: Connection, new: Sequence[_Trial], cell_numbers: Mapping[str, int]) -> dict[_Key, int]:
    """Insert trials and return their row numbers."""
    if not new:
        return {}
    made = writer.execute(
        insert(trials).returning(trials.c.number, sort_by_parameter_order=True),
        [{**trial.row, "cell": cell_numbers[trial.key[0]]} for trial in new],
    ).scalars()
    places = dict(zip((trial.key for trial in new), made, strict=True))
    for table in BELONGING:
        names = table.c.keys()
        rows = [
            dict(zip(names, (places[trial.key], *row[1:]), strict=True))
            for trial in new
            for row in trial.belonging.get(table.name, ())
        ]
        bulk.insert_rows(writer, table, rows)
    return places


def _places_of(
    writer: Connection, campaign_id: str, keys: Sequence[_Key], cell_numbers: Mapping[str, int]
) -> dict[_Key, int]:
    """Return the row numbers of those of the trials that exist. Until the transaction ends, no other copy adds any."""
    _lock(writer, campaign_id)
    names = {cell_numbers[cell]: cell for cell, _ in keys}
    wanted = select(trials.c.cell, trials.c.block, trials.c.number)
    wanted = wanted.where(trials.c.cell.in_(names), trials.c.block.in_({block for _, block in keys}))
    found = {(names[cell], block): number for cell, block, number in writer.execute(wanted)}
    return {key: found[key] for key in keys if key in found}


def _lock(writer: Connection, campaign_id: str) -> int:
    """Let other copies of the campaign wait until the transaction ends. Returns the campaign's row number."""
    wanted = select(campaigns.c.number).where(campaigns.c.id == campaign_id)
    return int(writer.execute(wanted.with_for_update(key_share=True)).scalar_one())


def _loaded(connection: Connection, numbers: Sequence[int]) -> Generator[list[_Trial]]:
    """Yield the trials with these row numbers in pieces. While the caller writes one, a thread reads the next."""
    pieces = list(_pieces(connection, numbers))
    with ThreadPoolExecutor(1, "copy") as ahead:
        coming: Future[list[_Trial]] | None = None
        for piece in pieces:
            here, coming = coming, ahead.submit(_load, connection, piece)
            if here is not None:
                yield here.result()
        if coming is not None:
            yield coming.result()


def _pieces(connection: Connection, numbers: Sequence[int]) -> Iterator[list[int]]:
    """Divide trials for transactions: what one of them writes is in memory several times."""
    for begin in range(0, len(numbers), PIECE):
        piece: list[int] = []
        some, left = numbers[begin : begin + PIECE], PIECE_BYTES
        sizes = select(raw_output.c.trial, func.sum(func.length(raw_output.c.zlib)))
        wanted = sizes.where(raw_output.c.trial.in_(some)).group_by(raw_output.c.trial)
        bytes_of = {number: int(size) for number, size in connection.execute(wanted)}
        for number in some:
            left -= bytes_of.get(number, 0)
            if piece and left < 0:
                yield piece
                piece, left = [], PIECE_BYTES - bytes_of.get(number, 0)
            piece.append(number)
        yield piece


def _load(connection: Connection, numbers: Sequence[int]) -> list[_Trial]:
    wanted = select(cells.c.id, trials).join_from(trials, cells).where(trials.c.number.in_(numbers))
    found: dict[int, _Trial] = {}
    for cell, *values in connection.execute(wanted.order_by(trials.c.number)):
        row = dict(zip(trials.c.keys(), values, strict=True))
        own = {name: value for name, value in row.items() if name not in {"number", "cell"}}
        found[row["number"]] = _Trial(key=(cell, row["block"]), row=own)
    for table in BELONGING:
        for each in connection.execute(select(table).where(table.c.trial.in_(numbers))):
            found[each[0]].belonging[table.name].append(tuple(each))
    for trial in found.values():
        for rows in trial.belonging.values():
            rows.sort(key=lambda row: row[1])  # its name or position, unique within a trial and a table
    return list(found.values())


def _traced(connection: Connection, campaign_id: str) -> list[Row]:
    wanted = select(traced.c.cell, traced.c.record).join(campaigns).where(campaigns.c.id == campaign_id)
    return [dict(row) for row in connection.execute(wanted.order_by(traced.c.number)).mappings()]


def _finish(writer: Connection, campaign: Campaign, documents: Sequence[Row], trials_there: int) -> None:
    """Write what may have changed since an earlier copy: traced trials, the status, and the planned repetitions.

    ``trials_there``: the number of trials of the original, which the target has now.
    """
    number = _lock(writer, campaign.id)
    there = _traced(writer, campaign.id)
    new = [{**row, "campaign": number} for row in documents if row not in there]
    if new:
        writer.execute(insert(traced), new)
    (known,) = queries.select_campaigns(writer, campaign.id)
    now = _later(known, campaign, has_more=queries.count_trials(writer, campaign.id) > trials_there)
    if (now.trials, now.settings) != (known.trials, known.settings):
        queries.update_plan(writer, now)
    if now.status is not known.status:
        queries.update_campaign(writer, campaign.id, status=now.status.value)


def _plain(value: Any) -> str:
    match value:
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat()
    raise TypeError(f"no value of a store: {value!r}")


_ENDED = frozenset({CampaignStatus.FINISHED, CampaignStatus.BUDGET_SPENT, CampaignStatus.FAILED})


def _later(target: Campaign, source: Campaign, *, has_more: bool) -> Campaign:
    """Return the target's campaign with what the source has decided since: more trials, more runs, and its status.

    ``has_more``: the target has trials that the source does not have. A plan only grows, so the one with more
    extensions is the later one. The target keeps its status if it is further in anything. With the same plan, it also
    keeps ``finished``, and any end if the source says ``running``: that was read before the end, or the campaign
    continues there and will end again.
    """
    extended, run_again = _extent(source) > _extent(target), _runs(source) > _runs(target)
    settings: dict[str, object] = {}
    if extended:
        settings |= {"stopping": source.settings.stopping, "extended_from": source.settings.extended_from}
    if run_again:
        settings["runs"] = source.settings.runs
    ahead = has_more or _extent(source) < _extent(target) or _runs(source) < _runs(target)
    stale = target.status is CampaignStatus.FINISHED or (
        target.status in _ENDED and source.status is CampaignStatus.RUNNING
    )
    keeps = ahead or (stale and not extended and not run_again)
    status = target.status if keeps else source.status
    trials = source.trials if extended else target.trials
    return target.with_settings(**settings).model_copy(update={"trials": trials, "status": status})


def _extent(campaign: Campaign) -> tuple[int, int, bool]:
    stopping = campaign.stopping
    return len(campaign.settings.extended_from), stopping.most, stopping.planned_most is not None


def _runs(campaign: Campaign) -> int:
    return len(campaign.settings.runs)
