"""Tests of the status of a campaign that is read while the campaign ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.root.test_store_lost import Noting, created

from fslab.campaign import cleanup, liveness, trial_loop, undo_journal
from fslab.storage import Workspace
from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "store.sqlite")) as opened:
        yield opened


def test_how_it_ended_is_stored_while_its_process_holds_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The final status is stored before the campaign releases its journal.

    Otherwise another process could find a campaign with the status RUNNING but without a process.
    """
    campaign = created(store, tmp_path)
    before, opened = [], cleanup.opened_workspace

    @contextmanager
    def watched(*arguments: Any) -> Iterator[Workspace]:
        with opened(*arguments) as workspace:
            yield workspace
            before.append(store.campaign(campaign.id).status)
            assert undo_journal.is_running(campaign.id)

    monkeypatch.setattr(cleanup, "opened_workspace", watched)
    trial_loop.run_campaign(campaign, store, Noting(at_trial=lambda _: None), budget_s=None)
    assert before == [CampaignStatus.FINISHED]


def test_one_that_ended_since_it_was_read_was_not_killed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = created(store, tmp_path)

    def ends(campaign: str, store: Store) -> bool:
        store.set_campaign_status(campaign, CampaignStatus.FINISHED)
        return False

    assert liveness.as_it_is(read, store).status is CampaignStatus.INTERRUPTED
    monkeypatch.setattr(liveness, "is_running", ends)
    assert liveness.as_it_is(read, store).status is CampaignStatus.FINISHED
