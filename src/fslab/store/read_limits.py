"""The bounds on what reading a store may take in memory, checked before a statement of ``queries`` runs.

Any machine of a fleet can write to a store, and a broken tool can print anything.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Text, case, cast, func, select

from fslab.errors import NoSpaceError
from fslab.store.schema import campaigns, cell_numbers, cells, metrics, probes, traced, trials, warnings
from fslab.system import memory
from fslab.units import format_size

RAW_SHARE = 4  # the outputs of all trials may take a quarter of the available memory

# What reading trials takes in memory, rounded up from 890 and 14 (Python 3.11): a figure; a character of a document.
FIGURE_BYTES, CHARACTER_BYTES = 1000, 16
CAMPAIGN_LIMIT = 64 << 20  # characters of a campaign's study, settings and cells


def check_campaigns(connection: Connection, campaign_id: str | None) -> None:
    """Raise ValueError before a campaign is read that no study has: any machine of a fleet can write one."""
    own = campaigns.c
    texts = _characters(own.study_id, own.study_title, own.study_source, own.settings, own.machine, own.note)
    of_cells = select(func.sum(_characters(cells.c.spec))).join(campaigns).group_by(own.number)
    for wanted in (select(texts), of_cells):
        one = wanted if campaign_id is None else wanted.where(own.id == campaign_id)
        largest = max(connection.execute(one).scalars(), default=0)
        if largest > CAMPAIGN_LIMIT:
            raise ValueError(f"a campaign of {format_size(int(largest))}")


def check_trials(connection: Connection, campaign_id: str, only: Collection[str] | None) -> None:
    """Raise NoSpaceError before trials are read that need more memory than there is. A trial of a broken tool, or of a
    machine that sends anything, can have millions of figures and texts of a gigabyte."""
    own = select(trials.c.number).where(trials.c.cell.in_(cell_numbers(campaign_id)))
    needed = FIGURE_BYTES * count_figures(connection, campaign_id, only)
    read = trials.c.provenance if only is None else case((trials.c.block == 0, trials.c.provenance))
    for texts, of in (
        (_characters(trials.c.error, read), trials.c.number),
        (_characters(warnings.c.message, warnings.c.hint, warnings.c.data), warnings.c.trial),
    ):
        size = connection.execute(select(func.sum(texts)).where(of.in_(own))).scalar()
        needed += CHARACTER_BYTES * int(size or 0)
    _require_memory(campaign_id, needed)


def count_figures(connection: Connection, campaign_id: str, only: Collection[str] | None = None) -> int:
    """Return how many figures the trials of a campaign have, with those of the kernel; with ``only`` those so named."""
    own = select(trials.c.number).where(trials.c.cell.in_(cell_numbers(campaign_id)))
    found = 0
    for table in (metrics, probes):
        counted = select(func.count()).select_from(table).where(table.c.trial.in_(own))
        counted = counted if only is None else counted.where(table.c.name.in_(sorted(only)))
        found += connection.execute(counted).scalar_one()
    return found


def check_traced(connection: Connection, campaign_id: str) -> None:
    """Raise NoSpaceError before traced trials are read that need more memory than there is."""
    size = select(func.sum(_characters(traced.c.record))).join(campaigns).where(campaigns.c.id == campaign_id)
    _require_memory(campaign_id, CHARACTER_BYTES * int(connection.execute(size).scalar() or 0))


def raw_bytes() -> int | None:
    """Return how much output of tools may be read; None if the available memory is unknown."""
    available = memory.available_bytes()
    return None if available is None else available // RAW_SHARE


def _require_memory(campaign_id: str, needed: int) -> None:
    available = memory.available_bytes()
    if available is not None and needed > available:
        raise NoSpaceError(
            f"the trials of campaign '{campaign_id}' need about {format_size(needed)}, and {format_size(available)} "
            "are available",
            where="memory",
            hint=f"if no tool can have measured so much, delete it: fslab delete {campaign_id}",
        )


def _characters(*columns: ColumnElement[Any]) -> ColumnElement[int]:
    """Return how many characters these texts and JSON documents of a row have."""
    first, *others = (func.coalesce(cast(func.length(cast(each, Text)), BigInteger), 0) for each in columns)
    return sum(others, start=first)
