"""Tests that a campaign that runs is known by its store: nobody deletes it, or runs it a second time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import psycopg
import pytest
from tests import postgresql
from tests.limits import LIMIT_S
from tests.made import campaign, trial

from fslab.errors import BusyError, StoreLostError
from fslab.store.store import Store

_HOLDS = """
import sys
from fslab.store.store import Store
with Store.open(sys.argv[1]) as store, store.running("runs"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(store: Store, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that runs the campaign ``runs``."""
    for name in ("runs", "idle"):
        store.create_campaign(campaign(name))
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def released(store: Store) -> bool:
    ends = time.monotonic() + LIMIT_S
    while store.is_running("runs") and time.monotonic() < ends:
        time.sleep(0.05)
    return not store.is_running("runs")


def test_a_campaign_that_runs_is_neither_deleted_nor_run_again(
    store: Store, holder: subprocess.Popen[bytes]
) -> None:
    assert [store.is_running(name) for name in ("runs", "idle")] == [True, False]
    with pytest.raises(BusyError, match="runs is running in another process"):
        store.delete_campaign("runs")
    with pytest.raises(BusyError), store.running("runs"):
        pass
    store.delete_campaign("idle")
    with store.running("idle"):
        assert store.is_running("idle")
    assert not store.is_running("idle")
    holder.kill()
    assert released(store)
    store.delete_campaign("runs")
    assert store.campaigns() == []


def end_lock_connections(cluster: postgresql.Cluster) -> None:
    with psycopg.connect(host=str(cluster.directory), user="fslab", dbname="postgres") as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        )


@pytest.fixture
def shared(store: Store, kind: str) -> Store:
    """Return a store with a campaign ``runs`` whose lock can be lost."""
    if kind == "sqlite":
        pytest.skip("has no connection that could be lost")
    store.create_campaign(campaign("runs"))
    return store


def test_a_lock_whose_connection_was_lost_is_taken_again(
    shared: Store, url: str, cluster: postgresql.Cluster
) -> None:
    with shared.running("runs"):
        end_lock_connections(cluster)
        assert released(shared)
        shared.add_trial(trial(campaign="runs"))
        assert shared.is_running("runs")
        with pytest.raises(BusyError), Store.open(url) as other:
            other.delete_campaign("runs")
        end_lock_connections(cluster)
    assert shared.count("runs") == 1
    assert not shared.is_running("runs")


def test_a_campaign_whose_lost_lock_another_process_has_ends(
    shared: Store, url: str, cluster: postgresql.Cluster
) -> None:
    with Store.open(url) as other, shared.running("runs"):
        end_lock_connections(cluster)
        assert released(shared)
        with other.running("runs"), pytest.raises(StoreLostError, match="another process runs it"):
            shared.add_trial(trial(campaign="runs"))
        shared.add_trial(trial(campaign="runs"))
    assert shared.count("runs") == 1
