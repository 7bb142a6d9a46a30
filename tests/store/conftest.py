"""Fixtures for tests of the store. Each test runs with SQLite and with a real PostgreSQL server, started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import postgresql

from fslab.store.store import Store

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgresql.Cluster]:
    programs = postgresql.binaries()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed: make test-packages")
    with postgresql.running(programs) as made:
        yield made


@pytest.fixture(scope="session")
def current(cluster: postgresql.Cluster) -> str:
    """Return the name of a PostgreSQL database with an empty store, as the template of other databases."""
    name = cluster.database()
    Store.open(cluster.url_of(name)).close()
    return name


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of database: ``sqlite`` or ``postgresql``."""
    return str(request.param)


@pytest.fixture
def empty(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return a URL at which a store can be created: in a directory that does not exist yet, or an empty database."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/new directory/store.sqlite"
    cluster: postgresql.Cluster = request.getfixturevalue("cluster")
    return cluster.url_of(cluster.database())


@pytest.fixture
def url(kind: str, empty: str, request: pytest.FixtureRequest) -> str:
    """Return the URL of the test's own store. With SQLite, it is created at the first use."""
    if kind == "sqlite":
        return empty
    cluster: postgresql.Cluster = request.getfixturevalue("cluster")
    return cluster.url_of(cluster.database(like=request.getfixturevalue("current")))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened
