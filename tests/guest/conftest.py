"""Fixtures for tests that boot guests, as any user. A test fails if it leaves anything behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.directories import set_directories
from tests.limits import wait_for

from fslab.campaign import cleanup, trial_loop
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Cell, MachineSpec, WorkloadSpec
from fslab.machine.kinds import REGISTRY
from fslab.system import memory


def group_members(leader: int) -> list[int]:
    """Return the ids of a process group's processes, without zombies."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            _, _, rest = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue
        state, _, group = rest.split()[:3]
        if int(group) == leader and state != "Z":
            found.append(int(entry.name))
    return found


@contextlib.contextmanager
def _guests(home: Path) -> Iterator[TrialMachines]:
    """Yield the guests of a campaign whose files are below ``home``. Check that their processes and files are gone."""
    missing = REGISTRY.get("uml").missing(MachineSpec(type="uml"))
    if missing:
        pytest.skip(f"{missing[0].what}: {missing[0].remedy}")
    campaign = trial_loop.new_id()
    leaders: list[int] = []
    with cleanup.opened_workspace(campaign, frozenset()) as workspace:
        made = TrialMachines(workspace=workspace)
        yield made
        leaders += [guest.child.pid for guest in made.running]
    wait_for(lambda: not any(map(group_members, leaders)))  # a large guest needs a moment to free its memory
    assert not workspace.runtime.exists()
    assert not list(memory.SHARED.glob(f"fslab-{campaign}-*")), "an image is left"
    assert not list((home / "state").rglob("*.jsonl")), "a journal is left"


@pytest.fixture
def guests(own_directories: Path) -> Iterator[TrialMachines]:
    """Yield guests that only this test uses."""
    with _guests(own_directories) as made:
        yield made


@pytest.fixture(scope="module")
def _kept(
    tmp_path_factory: pytest.TempPathFactory, session_cache: Path
) -> Iterator[tuple[Path, TrialMachines]]:
    home = tmp_path_factory.mktemp("g")
    with pytest.MonkeyPatch.context() as patch:
        set_directories(patch, home)
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        with _guests(home) as made:
            yield home, made


@pytest.fixture
def shared(
    _kept: tuple[Path, TrialMachines], session_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TrialMachines]:
    """Yield guests that all tests of the module use, in directories of their own: a boot takes seconds of CPU time.

    A test may break its guest. The next test that needs one boots another.
    """
    home, made = _kept
    set_directories(monkeypatch, home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))
    yield made
    if any(guest.broken for guest in made.running):
        made.end()


def cell(filesystem: str = "ext4", **changes: Any) -> Cell:
    """Return the cell of a short trial in a guest: random writes for 1.2 s on an image in memory.

    ``changes``: fields of the cell to replace.
    """
    machine = MachineSpec(type="uml", memory="256m")
    stack = made.spec(filesystem, options={"size": "96m"}, machine=machine)
    parameters = {"rw": "randwrite", "bs": "4k", "size": "8m", "runtime": "1200ms", "direct": True}
    values = {
        "stack": stack,
        "workload": WorkloadSpec(name="w", tool="fio", parameters=parameters),
        **changes,
    }
    return Cell.model_validate(values)
