"""Tests of trials on a file system that outlives them: when it counts as lost, and which files they begin with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.test_campaign import cell, record

from fslab.campaign import disks, trial_setup
from fslab.campaign.running_trial import RunningTrial
from fslab.campaign.trial_loop import lost_slots
from fslab.cell import Fresh, TrialKey
from fslab.storage import Workspace, stack
from fslab.trial_record import Status

KEPT = cell().model_copy(update={"fresh": Fresh.CELL})


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace in which the directory of every stack is ``work``."""
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(disks, "renew", lambda *_, **__: None)
    monkeypatch.setattr(stack, "build", lambda *_, **__: SimpleNamespace(work=tmp_path / "work"))
    return Workspace(campaign="c", runtime=tmp_path, images=tmp_path, journal=None)  # type: ignore[arg-type]


def built(workspace: Workspace, block: int) -> RunningTrial:
    key = TrialKey(campaign="c", block=block, seed=1)
    trial = RunningTrial(cell=KEPT, key=key, workspace=workspace, machine={})
    trial_setup._build(trial)
    trial.undo.pop_all()  # never closed, as if the file system were unmounted then
    return trial


def test_a_cell_that_begins_in_a_later_block_has_lost_nothing(workspace: Workspace) -> None:
    assert not built(workspace, block=3).remade
    assert not built(workspace, block=4).remade


def test_a_file_system_is_lost_if_earlier_trials_used_it(workspace: Workspace) -> None:
    workspace.lost |= lost_slots([record(Status.OK, KEPT)])
    assert built(workspace, block=1).remade
    assert not built(workspace, block=2).remade  # on the one that was made again


@pytest.mark.parametrize(
    "known", [record(Status.FAILED, KEPT), record(Status.UNSUPPORTED, KEPT), record(Status.OK, cell())]
)
def test_trials_that_used_no_lasting_file_system_lose_none(known: Any) -> None:
    assert lost_slots([known]) == set()


def test_files_of_a_trial_that_failed_while_unmounted_are_removed(
    workspace: Workspace, tmp_path: Path
) -> None:
    built(workspace, block=0)
    (tmp_path / "work" / "left").write_text("x")
    built(workspace, block=1)
    assert list((tmp_path / "work").iterdir()) == []
