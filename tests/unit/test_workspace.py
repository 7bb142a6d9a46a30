"""Tests of a campaign's workspace: what it makes is removed at its end, by its journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from fslab.campaign import journal, workspace
from fslab.campaign.campaign import new_id
from fslab.system import paths


def test_a_workspace_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.RUNTIME, str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with workspace.opened(name := new_id(), frozenset()) as opened:
        (opened.runtime / "scratch" / "report").write_text("x")
        assert list(journal.leftover()) == [name]
    assert [path for path in tmp_path.rglob("*") if name in str(path)] == []
