"""Tests of a database that becomes unavailable during a campaign: writes are retried, and the final error says how to
resume the campaign.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests import postgresql
from tests.postgresql import Cluster

from fslab.campaign import launch, liveness, trial_loop
from fslab.campaign.liveness import as_it_is
from fslab.campaign.observer import Observer
from fslab.errors import StoreLostError
from fslab.store import connections, retry
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study import load


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    programs = postgresql.binaries()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed: make test-packages")
    with postgresql.running(programs) as made:
        yield made


class Noting(Observer):
    """Calls a function for each trial that starts and for each note."""

    def __init__(
        self, *, at_trial: Callable[[int], None], at_note: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__()
        self.at_trial, self.at_note = at_trial, at_note
        self.trials = 0
        self.notes: list[str] = []

    def trial_started(self, *_: Any) -> None:
        self.trials += 1
        self.at_trial(self.trials)

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.at_note(text)


def created(store: Store, directory: Path) -> Campaign:
    """Store a new campaign of three short trials, and return it."""
    study = {
        "title": "t", "trials": 3, "cache": "warm", "media": {"here": {"type": "directory", "path": str(directory)}},
        "stacks": {"s": {"medium": "here"}}, "workloads": {"w": {"tool": "dd", "op": "write", "bs": "4k", "count": 4}},
    }  # fmt: skip
    (directory / "study.yaml").write_text(json.dumps(study))
    path = directory / "study.yaml"
    found = launch.of_study(load.load(path), str(path))
    launch.create(found, store, launch.RunConditions())
    return found


def finishes_with_the_kept_trial(campaign: Campaign, store: Store) -> None:
    resumed = Noting(at_trial=lambda _: None)
    assert trial_loop.run_campaign(campaign, store, resumed, budget_s=None) is CampaignStatus.FINISHED
    assert resumed.trials == 1, "the second was measured already, and kept"
    assert not liveness.unstored_path(campaign.id).exists()
    assert [trial.key.block for trial in store.trials(campaign.id)] == [0, 1, 2]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "WAITS_S", (0.01, 0.01))
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)


@pytest.mark.usefixtures("hasty")
def test_a_server_that_comes_back_costs_nothing(cluster: Cluster, tmp_path: Path) -> None:
    observer = Noting(
        at_trial=lambda number: cluster.stop() if number == 2 else None, at_note=lambda _: cluster.start()
    )
    with Store.open(cluster.url) as store:
        campaign = created(store, tmp_path)
        status = trial_loop.run_campaign(campaign, store, observer, budget_s=None)
        assert status is CampaignStatus.FINISHED
        assert [trial.key.block for trial in store.trials(campaign.id)] == [0, 1, 2]
    assert len([text for text in observer.notes if "unavailable" in text]) == 1


@pytest.mark.usefixtures("hasty")
def test_a_server_that_stays_away_ends_the_campaign_with_how_to_go_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    observer = Noting(at_trial=lambda number: cluster.stop() if number == 2 else None)
    with Store.open(cluster.url) as store:
        campaign = created(store, tmp_path)
        with pytest.raises(StoreLostError, match=f"--resume {campaign.id}; .*kept in "):
            trial_loop.run_campaign(campaign, store, observer, budget_s=None)
        cluster.start()
        stored = store.campaign(campaign.id)
        assert stored.status is CampaignStatus.RUNNING  # the store was unavailable when the campaign ended
        assert as_it_is(stored, store).status is CampaignStatus.INTERRUPTED
        assert store.count(campaign.id) == 1
        finishes_with_the_kept_trial(stored, store)


@pytest.mark.usefixtures("hasty")
def test_a_full_disk_ends_the_campaign_with_how_to_go_on(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"

    def fill(number: int) -> None:
        if number == 2:
            with ballast.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    return

    with Store.open(str(small_disk / "store.sqlite")) as store:
        campaign = created(store, tmp_path)
        with pytest.raises(StoreLostError, match=f"free space .* then .*fslab run --resume {campaign.id}"):
            trial_loop.run_campaign(campaign, store, Noting(at_trial=fill), budget_s=None)
        ballast.unlink()
        finishes_with_the_kept_trial(store.campaign(campaign.id), store)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_moved_away_ends_the_campaign_with_how_to_go_on(
    replaced: bool, tmp_path: Path
) -> None:
    """SQLite would go on in the file that nobody finds any more."""
    (away := tmp_path / "away").mkdir()

    def move(number: int) -> None:
        if number == 2:
            for path in tmp_path.glob("store.sqlite*"):
                path.rename(away / path.name)
            if replaced:
                Store.open(str(tmp_path / "store.sqlite")).close()

    with Store.open(str(tmp_path / "store.sqlite")) as store:
        campaign = created(store, tmp_path)
        with pytest.raises(
            StoreLostError, match=f"(?s)was removed, moved or replaced .*--resume {campaign.id}"
        ):
            trial_loop.run_campaign(campaign, store, Noting(at_trial=move), budget_s=None)
        for path in tmp_path.glob("store.sqlite*"):
            path.unlink()
        for path in away.iterdir():
            path.rename(tmp_path / path.name)
        finishes_with_the_kept_trial(store.campaign(campaign.id), store)


@pytest.mark.usefixtures("hasty")
def test_a_store_that_another_program_locks_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:

        def lock(number: int) -> None:
            if number == 2:
                other.execute("BEGIN IMMEDIATE")

        def release(_: str) -> None:
            other.execute("COMMIT")

        observer = Noting(at_trial=lock, at_note=release)
        with Store.open(str(path)) as store:
            campaign = created(store, tmp_path)
            assert (
                trial_loop.run_campaign(campaign, store, observer, budget_s=None) is CampaignStatus.FINISHED
            )
            assert {trial.key.block for trial in store.trials(campaign.id)} == {
                0,
                1,
                2,
            }  # a disturbed one runs twice
    assert any("locked" in text for text in observer.notes)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("content", ["", "[" * 100_000, '{"key": 5}', None])
def test_what_is_kept_of_something_else_is_left_alone(content: str | None, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        campaign, other = created(store, tmp_path), created(store, tmp_path)
        place = liveness.unstored_path(campaign.id)
        place.parent.mkdir(parents=True)
        if content is None:
            assert trial_loop.run_campaign(other, store, Observer(), budget_s=None) is CampaignStatus.FINISHED
            content = store.trials(other.id)[0].model_dump_json()
        place.write_text(content)
        observer = Noting(at_trial=lambda _: None)
        assert trial_loop.run_campaign(campaign, store, observer, budget_s=None) is CampaignStatus.FINISHED
        assert any("was not stored" in text for text in observer.notes)
        assert place.read_text() == content
        place.unlink()
        assert {trial.key.block for trial in store.trials(campaign.id)} == {
            0,
            1,
            2,
        }  # a disturbed one runs twice
