"""Tests of a store that several machines use: what is resumed here was started here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta

import pytest
from tests.store.test_store import STARTED, campaign

from fslab.api import replications
from fslab.campaign import launch
from fslab.campaign.observer import Observer
from fslab.errors import StoreError, UsageError
from fslab.machine import facts
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study import load


def theirs(name: str = "theirs", **more: object) -> Campaign:
    """Return a campaign of another machine that has everything in common with this one, except its name."""
    machine = {**facts.gather(), "hostname": "lab2"}
    return campaign(name, machine=machine, created=STARTED + timedelta(hours=1), **more)


@pytest.fixture
def shared(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store with an unfinished campaign of this machine, and a later one of another machine."""
    monkeypatch.setattr(launch, "check_stored", lambda found, _: found)
    store.create_campaign(campaign("ours", machine=facts.gather()))
    store.create_campaign(theirs())
    return store


@pytest.mark.parametrize("wanted", [None, "quick", "quick.yaml"])
def test_the_last_campaign_of_this_machine_is_resumed(shared: Store, wanted: str | None) -> None:
    assert launch.unfinished(shared, wanted).id == "ours"
    assert launch.extended(shared, wanted, trials=9).id == "ours"


def test_a_campaign_that_is_named_is_taken(shared: Store) -> None:
    assert launch.unfinished(shared, "theirs").id == "theirs"
    assert launch.extended(shared, "theirs", trials=9).id == "theirs"


def test_if_only_others_are_unfinished_they_are_named(shared: Store) -> None:
    shared.set_campaign_status("ours", CampaignStatus.FINISHED)
    for wanted in (None, "last", "quick"):
        with pytest.raises(StoreError, match=r"another machine .*: theirs \(hostname: lab2 → "):
            launch.unfinished(shared, wanted)


def test_a_study_that_another_machine_has_finished_is_run_here(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load.load("quick")
    done = theirs(study_source=study.text, settings={"budget_s": study.limit_s})
    store.create_campaign(done.model_copy(update={"status": CampaignStatus.FINISHED}))

    def created(*_: object, **__: object) -> Campaign:
        raise UsageError("a new campaign")

    monkeypatch.setattr(launch, "of_study", created)
    assert unattended(store) == (["quick: a new campaign"], [])


def unattended(store: Store) -> tuple[list[str], list[Campaign]]:
    """Run the study ``quick`` unless the store has a campaign of it. Return failures, and the campaign."""
    taken: list[Campaign] = []
    terms = launch.RunConditions()
    failed = replications.run_each(
        ["quick"], store, terms, watched=lambda: nullcontext(Observer()), then=taken.append
    )
    return failed, taken


def test_a_campaign_with_other_cells_than_its_study_is_not_resumed_unattended(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load.load("quick")
    settings = {"budget_s": study.limit_s}
    forged = campaign(machine=facts.gather(), study_source=study.text, settings=settings)

    def refused(text: str) -> Callable[..., Campaign]:
        def refuse(*_: object, **__: object) -> Campaign:
            raise UsageError(text)

        return refuse

    monkeypatch.setattr(launch, "of_study", refused("a new campaign"))
    monkeypatch.setattr(launch, "check_resumable", refused("resumed"))
    store.create_campaign(forged)
    assert unattended(store)[0] == ["quick: a new campaign"]
    store.create_campaign(forged.model_copy(update={"id": "c2", "cells": launch.cells_of(study)}))
    assert unattended(store)[0] == ["quick: resumed"]
