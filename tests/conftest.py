"""Fixtures for every test: a state and data directory of its own, so that nothing of the user's is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long one example takes says nothing on a busy machine.
settings.register_profile("fslab", deadline=None)
settings.load_profile("fslab")


@pytest.fixture(autouse=True)
def own_directories(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """XDG directories of this test only; also where subprocesses of the test look."""
    home = tmp_path_factory.mktemp("fslab-xdg")
    for variable, name in (
        ("XDG_STATE_HOME", "state"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_RUNTIME_DIR", "run"),
        ("XDG_CACHE_HOME", "cache"),
    ):
        monkeypatch.setenv(variable, str(home / name))
    monkeypatch.delenv("FSLAB_STORE", raising=False)
    return home


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `root` are skipped for other users, and say so."""
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root: sudo make test"))
