"""Tests of a store on a read-only file system, with and without its write-ahead log."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.errors import StoreError
from fslab.record import Status, TrialRecord
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.system import proc

STARTED = datetime(2026, 11, 20, 21, 49, 7, tzinfo=UTC)
CELL = Cell(
    stack=StackSpec(name="xfs", medium=MediumSpec(name="memory", type="ram"), filesystem="xfs"),
    workload=WorkloadSpec(name="rand", tool="fio"),
)


def fill(store: Store) -> None:
    store.create_campaign(
        Campaign(
            id="c1", study_id="s", study_title="S", study_source="", seed=1, cells=(CELL,), trials=1, created=STARTED
        )
    )  # fmt: skip
    key = TrialKey(campaign="c1", block=0, seed=1)
    store.add_trial(TrialRecord(key=key, cell=CELL, status=Status.OK, started=STARTED, duration_s=1.0))


@pytest.mark.parametrize("left", ["nothing", "log and index", "log"])
def test_a_store_on_a_read_only_file_system(
    small_disk: Path, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All commits can be read, also those that are only in the log because the store was not closed."""
    path = small_disk / "store.sqlite"
    with Store.open(str(small_disk / "open.sqlite")) as store:
        fill(store)
        suffixes = {"nothing": [], "log": ["-wal"], "log and index": ["-wal", "-shm"]}[left]
        if left == "nothing":
            with Store.open(str(path)) as closed:
                fill(closed)
        else:
            for suffix in ["", *suffixes]:
                shutil.copyfile(f"{small_disk}/open.sqlite{suffix}", f"{path}{suffix}")
    assert {each.name for each in small_disk.glob("store*")} == {
        f"store.sqlite{end}" for end in ("", *suffixes)
    }
    temporary = tmp_path / "temporary"  # own directory: other tests open such stores at the same time
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    proc.run(["mount", "-o", "remount,ro", str(small_disk)])
    with Store.open(str(path), create=False) as store:
        assert [campaign.id for campaign in store.campaigns()] == ["c1"]
        assert len(store.trials("c1")) == 1
        with pytest.raises(StoreError, match="readonly"):
            store.set_campaign_status("c1", CampaignStatus.FINISHED)
    assert list(temporary.iterdir()) == []
