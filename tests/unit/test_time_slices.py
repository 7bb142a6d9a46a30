"""Tests of the turns of tools, without tools."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fslab.campaign import time_slices
from fslab.errors import FslabError


@pytest.mark.parametrize(("took_s", "seen"), [(0.02, True), (0.4, True), (4.0, False)])
def test_a_tool_that_ended_while_fslab_was_stopped_has_no_figures(
    took_s: float, seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is seen when fslab goes on: a run of 4 s would take as long as the stop."""
    running: Any = SimpleNamespace(ended_s=None, began_s=90.0, said_bytes=lambda: 0)
    running.has_ended = lambda _: setattr(running, "ended_s", 100 + took_s)
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    turn = time_slices.SlicedRun(
        name="x", stack="ext4", start=lambda: running, devices=(), directory=tmp_path, look=lambda: None, drain=None,
        limit_s=60.0,
    )  # fmt: skip
    turn.running = running
    turn._freezer = SimpleNamespace(thaw=lambda: None)  # type: ignore[assignment]
    if seen:
        turn.slice(0.03)
        assert turn.ran == [(100.0, 100 + took_s)]
    else:
        with pytest.raises(FslabError, match=r"did not run for about 4\.0 s"):
            turn.slice(0.03)
