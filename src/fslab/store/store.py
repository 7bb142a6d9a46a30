"""The store: campaigns and their trials. Each trial is written in one transaction and never changed.

``Store.open`` opens a store. ``database`` handles the connection, ``queries`` the statements.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Self

from sqlalchemy import Connection, Engine

from fslab.cell import Cell
from fslab.errors import NotStoredError, StoreError
from fslab.names import study_id
from fslab.store import campaign_locks, queries, read_limits, rows
from fslab.store.campaign import Campaign, CampaignEntry, CampaignStatus
from fslab.store.connections import WRITING
from fslab.store.database import open_engine
from fslab.store.database_errors import WRONG_CONTENT, checked_contents, translated
from fslab.store.retry import written
from fslab.store.store_url import file_of, place_of, store_option, store_url
from fslab.trial_record import TrialRecord

log = logging.getLogger("fslab.store")


def _at_once(write: Callable[[bool], None]) -> None:
    write(False)


class Store:
    """An open store. A context manager: leaving it closes the database.

    ``path``: what to show to a user, the file of an SQLite store, else the URL without its password.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # All statements of one read see the same state, as in SQLite: else, a trial that another process stores
        # meanwhile would have no figures.
        self._reader = (
            engine.execution_options(isolation_level="REPEATABLE READ") if self.is_shared else engine
        )
        self._writer = engine.execution_options(**{WRITING: True})
        self._retried: Callable[[Callable[[bool], None]], None] = _at_once
        self._keep_lock: Callable[[], None] | None = None
        self._warned: set[str] = set()  # ids of campaigns that cannot be read
        self.path = place_of(engine.url)
        self._file = file_of(engine.url)

    @classmethod
    def open(cls, url: str | None = None, *, create: bool = True) -> Store:
        """Open the store at a path or an SQLAlchemy URL (None: the user's own). Creates it if ``create``.

        StoreError if it cannot be opened, is another program's, or was written by a newer fslab.
        """
        return cls(open_engine(store_url(url), create=create))

    @property
    def is_shared(self) -> bool:
        """Whether several machines can use it: it is on a PostgreSQL server, not in a file."""
        return self._engine.dialect.name == "postgresql"

    def in_commands(self, campaign_id: str) -> str:
        """Return how commands name a campaign of this store, or a study or run: by its id, and ``--store`` if they need
        it."""
        return campaign_id + store_option(self.path)

    def close(self) -> None:
        """Close the database. Can be called twice."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def running(self, campaign_id: str) -> Iterator[None]:
        """Keep others from running or deleting a campaign. BusyError if it runs already.

        In this block, StoreLostError for a write of a trial or a status if the lock was lost and is not free any more.
        """
        if self.is_shared:
            with campaign_locks.held_on_server(self._engine, self.path, campaign_id) as keep:
                self._keep_lock = keep
                try:
                    yield
                finally:
                    self._keep_lock = None
        else:
            with campaign_locks.held(self._file, campaign_id) if self._file else nullcontext():
                yield

    def is_running(self, campaign_id: str) -> bool:
        """Return whether a process runs a campaign into this store: not an agent of a fleet, which sends copies."""
        if self.is_shared:
            return campaign_locks.is_held_on_server(self._engine, self.path, campaign_id)
        return self._file is not None and campaign_locks.is_held(self._file, campaign_id)

    def create_campaign(
        self, campaign: Campaign, *, fence: Callable[[Connection], object] = lambda _: None
    ) -> None:
        """Store a new campaign with its cells. StoreError if its id exists already, or if it has a cell twice.

        ``fence`` is called first in the transaction, and raises if nothing may be written.
        """
        if len({cell.id for cell in campaign.cells}) < len(campaign.cells):
            raise StoreError(f"campaign '{campaign.id}' has the same cell twice", where=self.path)
        with self._writing() as connection:
            fence(connection)
            if campaign.id in queries.campaign_ids(connection):
                raise StoreError(f"there is already a campaign '{campaign.id}'", where=self.path)
            queries.check_name(connection, campaign.name, campaign.id, self.path)
            queries.insert_campaign(connection, campaign)

    def set_campaign_status(self, campaign_id: str, status: CampaignStatus) -> None:
        """Store a campaign's status. StoreError if there is no such campaign."""

        def write(_again: bool) -> None:
            with self._writing() as connection:
                if not queries.update_campaign(connection, campaign_id, status=status.value):
                    raise NotStoredError(f"no campaign '{campaign_id}'", where=self.path)

        self._tried(write)

    def extend_campaign(self, campaign: Campaign) -> None:
        """Store how often a campaign repeats its cells from now on. StoreError if there is no such campaign."""
        with self._writing() as connection:
            if not queries.update_plan(connection, campaign):
                raise NotStoredError(f"no campaign '{campaign.id}'", where=self.path)

    def check_cells(self, campaign: Campaign) -> None:
        """Raise StoreError for a cell whose stored id does not match its content: no trial of it could be stored."""
        with self._reading() as connection:
            for cell in campaign.cells:
                if queries.cell_number(connection, campaign.id, cell.id) is None:
                    raise StoreError(
                        f"a cell of campaign '{campaign.id}' was altered in the store ({cell.workload.name} on "
                        f"{cell.stack.name})",
                        where=self.path,
                        hint="start a new campaign",
                    )

    def name_campaign(self, wanted: str, name: str | None) -> str:
        """Give a campaign a name, or remove its name (None). Returns the campaign's id.

        StoreError if another campaign has the name, or if the name could be mistaken for an id.
        """
        with self._writing() as connection:
            found = queries.resolved(connection, wanted, self.path)
            queries.check_name(connection, name, found, self.path)
            queries.update_campaign(connection, found, name=name)
            return found

    def note_campaign(self, wanted: str, note: str | None) -> str:
        """Replace a campaign's note (None: remove it). Returns the campaign's id."""
        with self._writing() as connection:
            found = queries.resolved(connection, wanted, self.path)
            queries.update_campaign(connection, found, note=None if note is None else rows.text(note))
            return found

    def delete_campaign(self, campaign_id: str) -> None:
        """Remove a campaign with its trials, completely or not at all. StoreError if there is no such campaign,
        BusyError if it runs."""
        with self.running(campaign_id), self._writing() as connection:
            self._status(connection, campaign_id)
            queries.delete_campaign(connection, campaign_id)

    def campaigns(self, study: str | None = None) -> list[Campaign]:
        """Return all campaigns, oldest first; with ``study`` only those of the study with this id.

        One that cannot be read is left out with a warning, so that the others can still be used.
        """
        with self._reading() as connection:
            try:
                found = queries.select_campaigns(connection)
            except WRONG_CONTENT:
                found = self._readable(connection)
        return found if study is None else [campaign for campaign in found if campaign.study_id == study]

    def _readable(self, connection: Connection) -> list[Campaign]:
        """Return the campaigns that can be read, oldest first; warn of the others."""
        found: list[Campaign] = []
        for campaign_id in queries.campaign_ids(connection):
            try:
                found.append(self._read(connection, campaign_id))
            except StoreError as error:
                if campaign_id not in self._warned:
                    log.warning("left out: %s", error)
                self._warned.add(campaign_id)
        return found

    def _read(self, connection: Connection, campaign_id: str) -> Campaign:
        with checked_contents(*self._place_of(campaign_id)):
            return queries.select_campaigns(connection, campaign_id)[0]

    def _place_of(self, campaign_id: str) -> tuple[str, str]:
        """Return where a campaign is, and what to do if it cannot be read."""
        hint = f"delete it: fslab delete {shlex.quote(campaign_id)}; or give another store with --store"
        return f"{self.path}: campaign {campaign_id}", hint

    def last_of(self, wanted: str) -> Campaign:
        """Return the last campaign of the study ``wanted`` (id or file), or the campaign ``wanted``.

        StoreError if there is none.
        """
        of_study = self.campaigns(study_id(wanted))
        return of_study[-1] if of_study else self.campaign(wanted)

    def campaign(self, wanted: str = queries.LAST) -> Campaign:
        """Return the campaign with this id, name or unique prefix of an id.

        ``last`` is the newest campaign, ``last~1`` the one before it. StoreError with the nearest ids, or with the ids
        that match a prefix.
        """
        with self._reading() as connection:
            return self._read(connection, queries.resolved(connection, wanted, self.path))

    def entry(self, wanted: str) -> CampaignEntry:
        """Return what identifies a campaign, also if the rest of it cannot be read. ``wanted`` and errors as there."""
        with self._reading() as connection:
            return queries.select_entry(connection, queries.resolved(connection, wanted, self.path))

    def has(self, campaign_id: str) -> bool:
        """Return whether there is a campaign with exactly this id."""
        with self._reading() as connection:
            return campaign_id in queries.campaign_ids(connection)

    def add_trial(self, record: TrialRecord) -> None:
        """Store a finished trial, completely or not at all. It is on disk when this returns.

        StoreError if the store has no such campaign or cell, or has that trial already.
        """
        key = record.key
        what = f"trial {key.block} of cell {record.cell.id} of campaign '{key.campaign}'"

        def write(again: bool) -> None:
            with self._writing() as connection:
                cell = queries.cell_number(connection, key.campaign, record.cell.id)
                if cell is None:
                    raise StoreError(f"{what}: there is no such campaign or cell", where=self.path)
                if not queries.has_trial(connection, cell, key.block):
                    queries.insert_trial(connection, record, cell)
                elif not again:  # else only the confirmation of the commit was lost
                    raise StoreError(f"{what} is stored already", where=self.path)

        self._tried(write)

    def trials(
        self,
        campaign_id: str,
        *,
        raw: bool = False,
        only: Collection[str] | None = None,
        known: Collection[Cell] = (),
    ) -> list[TrialRecord]:
        """Return all trials of a campaign, in the order in which they were stored. NotStoredError if it is not there,
        NoSpaceError if they need more memory than there is.

        The tools' output is left out unless ``raw``. ``only``, for campaigns of very many trials: return only the
        figures with these names, and the provenance only of the first block. ``known``: cells of the campaign that the
        caller has already; they are not read again.
        """
        with self._reading_of(campaign_id) as connection:
            return queries.select_trials(connection, campaign_id, raw=raw, only=only, known=known)

    def count(self, campaign_id: str) -> int:
        with self._reading_of(campaign_id) as connection:
            return queries.count_trials(connection, campaign_id)

    def count_figures(self, campaign_id: str) -> int:
        """Return the number of figures of all trials of a campaign, with those of the kernel."""
        with self._reading_of(campaign_id) as connection:
            return read_limits.count_figures(connection, campaign_id)

    def counts(self) -> dict[str, int]:
        """Return the number of trials of each campaign that has some, by its id."""
        with self._reading() as connection:
            return queries.trial_counts(connection)

    def status(self, campaign_id: str) -> CampaignStatus:
        """Return the stored status of the campaign with exactly this id. StoreError if there is none."""
        with self._reading() as connection:
            return self._status(connection, campaign_id)

    def is_over_in_fleet(self, campaign_id: str) -> bool:
        """Return whether the campaign is of a fleet that no longer runs it."""
        with self._reading() as connection:
            return queries.is_over_in_fleet(connection, campaign_id)

    def _status(self, connection: Connection, campaign_id: str) -> CampaignStatus:
        found = queries.status_of(connection, campaign_id)
        if found is None:
            raise NotStoredError(f"no campaign '{campaign_id}'", where=self.path)
        return CampaignStatus(found)

    def finished(self, campaign_id: str) -> set[tuple[str, int]]:
        """Return cell id and block of every stored trial, however it ended: a resumed campaign skips these."""
        with self._reading_of(campaign_id) as connection:
            return set(queries.trial_numbers(connection, campaign_id))

    def add_traced(self, record: TrialRecord) -> None:
        """Store a traced trial apart from the other trials. Its cell need not be one of the campaign's.

        StoreError if there is no such campaign.
        """

        def write(again: bool) -> None:
            with self._writing() as connection:
                if again and queries.has_traced(connection, record):  # only the confirmation was lost
                    return
                if not queries.insert_traced(connection, record):
                    raise NotStoredError(f"no campaign '{record.key.campaign}'", where=self.path)

        self._tried(write)

    def traced(self, campaign_id: str) -> list[TrialRecord]:
        """Return the traced trials of a campaign, oldest first."""
        with self._reading_of(campaign_id) as connection:
            return queries.select_traced(connection, campaign_id)

    def count_traced(self, campaign_id: str) -> int:
        with self._reading_of(campaign_id) as connection:
            return queries.count_traced(connection, campaign_id)

    @contextmanager
    def patient(self, campaign_id: str, note: Callable[[str], object]) -> Iterator[None]:
        """Retry writes of trials and statuses in this block if the database is unavailable; ``note`` gets messages."""
        self._retried = partial(written, campaign_id, note)
        try:
            yield
        finally:
            self._retried = _at_once

    def _tried(self, write: Callable[[bool], None]) -> None:
        def locked(again: bool) -> None:
            if self._keep_lock is not None:
                self._keep_lock()
            write(again)

        self._retried(locked)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translated(self.path), checked_contents(self.path), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def _reading_of(self, campaign_id: str) -> Iterator[Connection]:
        """Read what belongs to a campaign. NotStoredError if it is not there, such as deleted after the caller read it:
        no trials would be a wrong answer."""
        with self._reading() as connection, checked_contents(*self._place_of(campaign_id)):
            self._status(connection, campaign_id)
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with translated(self.path), self._writer.begin() as connection:
            yield connection
