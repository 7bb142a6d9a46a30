"""Runs SQL of tests directly in the database, not through fslab."""

from __future__ import annotations

from typing import Any

from sqlalchemy import NullPool, create_engine


def sql(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Execute and commit a statement. Return its rows."""
    with create_engine(url, poolclass=NullPool).begin() as connection:
        done = connection.exec_driver_sql(statement)
        return [tuple(row) for row in done] if done.returns_rows else []
