"""Tests of a store on a read-only file system, with and without its write-ahead log."""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from tests import made

from fslab.errors import StoreError
from fslab.store import readonly
from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store
from fslab.system import proc


def fill(store: Store) -> None:
    store.create_campaign(made.campaign())
    store.add_trial(made.trial())


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


def test_copies_of_a_store_of_others_are_made_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may take half of the free space: several that begin together would take all of it."""
    path, together = tmp_path / "theirs/store.sqlite", Barrier(2)
    with Store.open(str(path)) as store:
        fill(store)
    path.parent.chmod(0o777)
    copy, met = readonly._copy_data, list[bool]()

    def meeting(*what: Any) -> None:
        with suppress(BrokenBarrierError):
            together.wait(0.5)
            met.append(True)
        copy(*what)

    def read(_number: int) -> int:
        with Store.open(str(path), create=False) as store:
            return store.count("c1")

    monkeypatch.setattr(readonly, "_copy_data", meeting)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(read, range(2))) == [1, 1]
    assert not met
