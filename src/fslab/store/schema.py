"""The tables, in portable SQL, with the triggers that prevent changes of trials, and the number of this schema.

There is one schema. In other databases than SQLite and PostgreSQL, only the program itself prevents changes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    select,
    text,
)

VERSION_TABLE = "fslab_version"
SCHEMA = "0006"  # another number is a store that this program cannot read


class Utc(TypeDecorator[datetime]):
    """An instant, stored in UTC because SQLite has no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Convert to UTC. ValueError for an instant without a time zone."""
        if value is not None and value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class WideInteger(TypeDecorator[int]):
    """An integer of any size (a seed), stored as decimal text: an unsigned 64-bit number fits no SQL integer."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: int | None, _dialect: Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> int | None:
        return None if value is None else int(value)


Json = JSON(none_as_null=True)
RowId = BigInteger().with_variant(Integer, "sqlite")  # in SQLite, only INTEGER is numbered automatically
metadata = MetaData()

campaigns = Table(
    "campaigns",
    metadata,
    Column("number", RowId, primary_key=True),
    Column("id", String(128), nullable=False, unique=True),
    Column("study_id", Text, nullable=False),
    Column("study_title", Text, nullable=False),
    Column("study_source", Text, nullable=False),
    Column("settings", Json, nullable=False),
    Column("seed", WideInteger, nullable=False),
    Column("trials", Integer, nullable=False),
    Column("machine", Json, nullable=False),
    Column("created", Utc, nullable=False),
    Column("status", String(32), nullable=False),
    Column("name", String(128)),
    Column("note", Text),
    Index("campaign_name", "name", unique=True),
)

cells = Table(
    "cells",
    metadata,
    Column("number", RowId, primary_key=True),
    Column("campaign", ForeignKey("campaigns.number"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("id", String(32), nullable=False),
    Column("stack", Text, nullable=False),
    Column("filesystem", Text),
    Column("medium", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("spec", Json, nullable=False),
    UniqueConstraint("campaign", "id", name="cell_once_per_campaign"),
)

trials = Table(
    "trials",
    metadata,
    Column("number", RowId, primary_key=True),
    Column("cell", ForeignKey("cells.number"), nullable=False),
    Column("block", Integer, nullable=False),
    Column("seed", WideInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", String(32), nullable=False),
    Column("failure", String(64)),
    Column("error", Text),
    Column("started", Utc, nullable=False),
    Column("duration_s", Float(53), nullable=False),
    Column("provenance", Json, nullable=False),
    UniqueConstraint("cell", "block", name="trial_once_per_block"),
)


def _of_a_trial() -> tuple[Column[int], ForeignKeyConstraint]:
    """Return the column of the trial that a row belongs to. On PostgreSQL, a trigger takes the place of the key."""
    key = ForeignKeyConstraint(["trial"], ["trials.number"]).ddl_if(dialect="sqlite")
    return Column("trial", RowId, primary_key=True), key


def _figures(name: str) -> Table:
    """Return a table of named values of a trial; NULL is unknown."""
    return Table(
        name,
        metadata,
        *_of_a_trial(),
        Column("name", String(128), primary_key=True),
        Column("position", Integer, nullable=False),
        Column("value", Float(53)),
        Column("unit", String(16), nullable=False),
    )


metrics = _figures("metrics")
probes = _figures("probes")

warnings = Table(
    "warnings",
    metadata,
    *_of_a_trial(),
    Column("position", Integer, primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("severity", String(16), nullable=False),
    Column("message", Text, nullable=False),
    Column("hint", Text),
    Column("data", Json, nullable=False),
)

raw_output = Table(
    "raw_output",
    metadata,
    *_of_a_trial(),
    Column("name", String(255), primary_key=True),
    Column("zlib", LargeBinary, nullable=False),
)

BELONGING = (metrics, probes, warnings, raw_output)  # rows of trials

# Traced trials: they explain differences and are never compared, so they have a table of their own.
traced = Table(
    "traced",
    metadata,
    Column("number", RowId, primary_key=True),
    Column("campaign", ForeignKey("campaigns.number"), nullable=False),
    Column("cell", String(32), nullable=False),
    Column("record", Json, nullable=False),
)

# A fleet: its machines, their assignments and their schedules.
fleet_machines = Table(
    "fleet_machines",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("id", String(64), nullable=False),
    Column("labels", Json, nullable=False),
    Column("facts", Json, nullable=False),
    Column("version", String(64), nullable=False),
    Column("running", Text),
    Column("last_seen", Utc, nullable=False),
)

fleet_assignments = Table(
    "fleet_assignments",
    metadata,
    Column("number", RowId, primary_key=True),
    Column("id", String(128), nullable=False, unique=True),
    Column("run", String(64), nullable=False, index=True),
    Column("schedule", String(128)),
    Column("machine", String(128), nullable=False, index=True),
    Column("campaign", String(128), nullable=False, unique=True),
    Column("study", Json, nullable=False),
    Column("created", Utc, nullable=False),
    Column("status", String(32), nullable=False, index=True),
    Column("message", Text),
    Column("epoch", Integer, nullable=False),
    Column("holder", String(64)),
    Column("lease_until", Utc),
    Column("ended", Utc),
)

fleet_schedules = Table(
    "fleet_schedules",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("study", Json, nullable=False),
    Column("machines", Json, nullable=False),
    Column("spread", Boolean, nullable=False),
    Column("every_s", Integer, nullable=False),
    Column("next_run", Utc, nullable=False),
    Column("last_run", String(64)),
    Column("message", Text),
)

# Campaigns that are being deleted. Triggers allow deletes only while this table has a row, within one transaction.
deletions = Table("deletions", metadata, Column("campaign", ForeignKey("campaigns.number"), primary_key=True))

# A campaign can be deleted while it is marked as being deleted; single trials cannot be changed or deleted.
IMMUTABLE = ("trials", "metrics", "probes", "warnings", "raw_output", "traced")


def cell_numbers(campaign_id: str) -> Select[tuple[int]]:
    """Return a selection of the row numbers of a campaign's cells, for other statements."""
    return select(cells.c.number).join(campaigns).where(campaigns.c.id == campaign_id)


_REFUSE = "BEGIN SELECT RAISE(ABORT, 'trials are immutable'); END"
_POSTGRESQL_REFUSE = """
CREATE FUNCTION fslab_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM deletions) THEN RETURN NULL; END IF;
  RAISE EXCEPTION 'trials are immutable';
END $$
"""
# PostgreSQL checks once per statement that figures, warnings and output belong to a trial. It would check a foreign
# key once per row, which takes four fifths of the time of inserting a trial of 100 rows.
_ADDED = """
CREATE FUNCTION fslab_has_trial() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE missing bigint;
BEGIN
  SELECT trial INTO missing FROM (SELECT DISTINCT trial FROM added) AS each
    WHERE NOT EXISTS (SELECT FROM trials WHERE number = each.trial) LIMIT 1;
  IF FOUND THEN
    RAISE foreign_key_violation USING MESSAGE = format('%s: there is no trial %s', TG_TABLE_NAME, missing);
  END IF;
  RETURN NULL;
END $$
"""
_REMOVED = """
CREATE FUNCTION fslab_has_no_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM removed WHERE {conditions}) THEN
    RAISE foreign_key_violation USING MESSAGE = 'a trial still has figures, warnings or output';
  END IF;
  RETURN NULL;
END $$
"""


def create_tables(connection: Connection) -> None:
    """Create everything, in the caller's transaction. An error if another program has a table of one of these names."""
    metadata.create_all(connection, checkfirst=False)
    for statement in _TRIGGERS.get(connection.dialect.name, lambda: ())():
        connection.execute(text(statement))
    version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
    version.create(connection)
    connection.execute(version.insert().values(version_num=SCHEMA))


def sqlite_triggers() -> Iterator[str]:
    """Yield the statements that make the triggers of an SQLite store, as the store keeps them."""
    for name in IMMUTABLE:
        yield f"CREATE TRIGGER {name}_no_update BEFORE UPDATE ON {name} {_REFUSE}"
        unless = "WHEN NOT EXISTS (SELECT 1 FROM deletions)"
        yield f"CREATE TRIGGER {name}_no_delete BEFORE DELETE ON {name} {unless} {_REFUSE}"


def _postgresql_triggers() -> Iterator[str]:
    yield _POSTGRESQL_REFUSE
    for name in IMMUTABLE:
        yield (
            f"CREATE TRIGGER {name}_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION fslab_immutable()"
        )
    yield _ADDED
    names = [table.name for table in BELONGING]
    conditions = (f"EXISTS (SELECT FROM {name} WHERE trial = removed.number)" for name in names)
    yield _REMOVED.format(conditions=" OR ".join(conditions))
    for name in names:
        yield (
            f"CREATE TRIGGER {name}_has_trial AFTER INSERT ON {name} REFERENCING NEW TABLE AS added "
            "FOR EACH STATEMENT EXECUTE FUNCTION fslab_has_trial()"
        )
    yield (
        "CREATE TRIGGER trials_have_no_rows AFTER DELETE ON trials REFERENCING OLD TABLE AS removed "
        "FOR EACH STATEMENT EXECUTE FUNCTION fslab_has_no_rows()"
    )


_TRIGGERS = {"sqlite": sqlite_triggers, "postgresql": _postgresql_triggers}
