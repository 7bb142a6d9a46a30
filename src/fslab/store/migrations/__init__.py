"""Upgrades a store's schema to this program's revision with Alembic, in the caller's transaction.

One file per revision in ``versions``. Code of a released revision must not be changed.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def configuration(connection: Connection | None = None) -> Config:
    """Return Alembic's settings; there is no alembic.ini."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection) -> None:
    """Run the missing revisions. The caller holds the lock and commits."""
    command.upgrade(configuration(connection), "head")
