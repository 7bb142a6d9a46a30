"""Reads instants of PostgreSQL that Python cannot represent in UTC (``infinity``, years before 1 or after 9999) as
unknown.

The driver would refuse the whole answer. Any machine that can write rows could so make all rows of a table unreadable.
Which ones the driver refuses depends on the session's time zone, which a role can set for itself.
"""

from datetime import UTC, datetime
from typing import Any

from psycopg import DataError
from psycopg.types.datetime import TimestamptzBinaryLoader, TimestamptzLoader


class _Text(TimestamptzLoader):
    def load(self, data: Any) -> datetime | None:  # type: ignore[override]
        try:
            return super().load(data).astimezone(UTC)
        except (DataError, OverflowError):
            return None


class _Binary(TimestamptzBinaryLoader):
    def load(self, data: Any) -> datetime | None:  # type: ignore[override]
        try:
            return super().load(data).astimezone(UTC)
        except (DataError, OverflowError):
            return None


def register(connection: Any) -> None:
    """Read the instants of this connection so."""
    for loader in (_Text, _Binary):
        connection.adapters.register_loader("timestamptz", loader)
