"""Creates the tables of a store, and the triggers that prevent changes of trials. There is one schema.

In other databases than SQLite and PostgreSQL, only the program itself prevents changes.
"""

from collections.abc import Iterator

from sqlalchemy import Column, Connection, MetaData, String, Table, text

from fslab.store.schema import BELONGING, IMMUTABLE, SCHEMA, VERSION_TABLE, metadata

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


def create(connection: Connection) -> None:
    """Create everything, in the caller's transaction."""
    metadata.create_all(connection)
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


def _postgresql() -> Iterator[str]:
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


_TRIGGERS = {"sqlite": sqlite_triggers, "postgresql": _postgresql}
