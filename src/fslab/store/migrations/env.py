"""Alembic runs this file; it is never imported. Passes our connection on, so all revisions share one transaction."""

from alembic import context

from fslab.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
context.run_migrations()
