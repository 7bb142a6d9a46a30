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

from fslab.errors import BusyError
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


def test_the_end_of_a_lost_connection_hides_no_error(
    store: Store, kind: str, cluster: postgresql.Cluster
) -> None:
    """The server ends the connection that holds the lock; the campaign goes on."""
    if kind == "sqlite":
        pytest.skip("has no connection that could be lost")
    store.create_campaign(campaign("c1"))
    with store.running("c1"):
        with psycopg.connect(host=str(cluster.directory), user="fslab", dbname="postgres") as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            )
        store.add_trial(trial())
    assert store.count("c1") == 1
    assert not store.is_running("c1")
