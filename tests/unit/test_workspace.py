"""Tests of a campaign's workspace: what it makes is removed at its end, by its journal."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests import made
from tests.limits import LIMIT_S

from fslab.campaign import cleanup, undo_journal
from fslab.campaign.running_trial import RunningTrial
from fslab.campaign.trial_loop import new_id
from fslab.campaign.undo_journal import CampaignJournal
from fslab.cell import MediumSpec, TrialKey
from fslab.errors import (
    LARGER_MEDIUM,
    SIZES_HINT,
    FslabError,
    InterruptedBySignal,
    NoSpaceError,
    ToolFailedError,
    UnsafeError,
)
from fslab.feasibility import RefusingJournal
from fslab.storage import Workspace
from fslab.storage.media import REGISTRY as MEDIA
from fslab.system import files, memory, mounts, page_cache, paths, process_marks, signals, trees


def test_a_workspace_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.RUNTIME, str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with cleanup.opened_workspace(name := new_id(), frozenset()) as opened:
        (opened.runtime / "scratch" / "report").write_text("x")
        assert list(undo_journal.leftover()) == [name]
    assert [path for path in tmp_path.rglob("*") if name in str(path)] == []


def test_a_signal_while_the_journal_is_opened_leaves_no_file(
    own_directories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("shields", 0), ("noted", None), ("left_at", None), ("raised", None)):
        monkeypatch.setattr(signals._SignalState, name, value)
    lock = fcntl.flock

    def interrupted(descriptor: int, operation: int) -> None:
        lock(descriptor, operation)
        signals._handle(signal.SIGTERM, None)

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(InterruptedBySignal), cleanup.opened_workspace(new_id(), frozenset()):
        raise AssertionError("was not interrupted")
    assert [path for path in own_directories.rglob("*") if path.is_file()] == []


def test_a_runtime_directory_that_is_removed_meanwhile_is_named(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    opened = Workspace(campaign="c", runtime=runtime, images=tmp_path, journal=RefusingJournal())
    key = TrialKey(campaign="c", block=0, seed=1)
    trial = RunningTrial(cell=made.CELL, key=key, workspace=opened, machine={})
    with pytest.raises(UnsafeError, match="runtime: was removed"), trial.guarded():
        (runtime / "scratch").mkdir()
    runtime.mkdir()
    with pytest.raises(FileNotFoundError), trial.guarded():
        (runtime / "gone/scratch").mkdir()
    trial.work = tmp_path / "work"
    with trial.guarded():
        mounts.flush(trial.work)
    assert "the workload has removed its directory" in str(trial.failure)


def fail(trial: RunningTrial, error: FslabError) -> None:
    """Let an error end a trial."""
    with trial.guarded(), ExitStack() as undo:
        undo.callback(raising, error)


def raising(error: FslabError) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "caused"), [(ToolFailedError("fio: EIO"), True), (NoSpaceError("x"), False)]
)
@pytest.mark.parametrize("faults", ["error op=write", None])
def test_a_failure_says_that_the_study_makes_its_disk_fail(
    error: FslabError, caused: bool, faults: str | None, tmp_path: Path
) -> None:
    options = {"faults": faults} if faults else {}
    medium = MediumSpec(name="disk", type="virtual", options=options)
    stack = made.CELL.stack.model_copy(update={"medium": medium})
    opened = Workspace(campaign="c", runtime=tmp_path, images=tmp_path, journal=RefusingJournal())
    key = TrialKey(campaign="c", block=0, seed=1)
    faulty = made.CELL.model_copy(update={"stack": stack})
    trial = RunningTrial(cell=faulty, key=key, workspace=opened, machine={})
    fail(trial, type(error)(error.what))  # a new one: the hint becomes a part of it
    assert ("makes this disk fail ('faults: error op=write')" in str(trial.failure)) is (
        caused and bool(faults)
    )


@pytest.mark.parametrize("hint", [SIZES_HINT, f"{LARGER_MEDIUM}, or lower files, size or scale"])
def test_of_a_full_medium_the_hint_names_what_is_full(hint: str, tmp_path: Path) -> None:
    """A sparse image has less room than its size, and a share of it is filled."""
    medium = MediumSpec(name="disk", type="ram", options={"size": "8g", "room": "1g"})
    stack = made.CELL.stack.model_copy(update={"medium": medium, "fill": "90%"})
    opened = Workspace(campaign="c", runtime=tmp_path, images=tmp_path, journal=RefusingJournal())
    full = made.CELL.model_copy(update={"stack": stack})
    key = TrialKey(campaign="c", block=0, seed=1)
    trial = RunningTrial(cell=full, key=key, workspace=opened, machine={})
    fail(trial, NoSpaceError("full", hint=hint))
    said = str(trial.failure)
    assert "give the medium more 'room' or a larger size, or " in said
    assert said.endswith(", or lower 'fill'")


def deepen(directory: Path, levels: int = 3000) -> None:
    """Make directories in each other, with a file in the last one."""
    here = os.open(directory, os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_a_tree_of_any_depth_is_read_and_removed(own_directories: Path) -> None:
    medium = MEDIA.get("directory")
    with cleanup.opened_workspace(name := new_id(), frozenset()) as opened:
        with ExitStack() as undo:
            options = medium.parse_options({"path": str(own_directories)})
            directory = medium.provide(options, opened, "m", undo)
            assert isinstance(directory, Path)
            deepen(directory, 1500)
            page_cache.fill_from(directory)
        assert not directory.exists()
        deepen(opened.runtime / "scratch")
    with CampaignJournal(name) as left:
        tree = own_directories / f"fslab-{name}-t"
        left.will_create("tree", str(tree))
        tree.mkdir()
        deepen(tree)
        assert cleanup.undo_pending(left)
    assert not tree.exists()


def test_a_link_that_takes_the_place_of_a_directory_leads_out_of_no_tree(tmp_path: Path) -> None:
    """A command that runs as another user could have root open a device that acts when it is opened."""
    (tree := tmp_path / "tree").mkdir()
    for name in ("a", "b"):
        (tree / name).mkdir()
        for file in ("one", "two"):
            (tree / name / file).write_text(name)
    (outside := tmp_path / "outside").mkdir()
    for file in ("one", "two"):
        (outside / file).write_text("outside")
    found = []
    for beneath, name in trees.files(tree):
        with files.opened(name, dir_fd=beneath) as descriptor:
            found.append(os.read(descriptor, 10))
        for each in ("a", "b"):  # one is read, the other is not yet
            if not (tree / each).is_symlink():
                (tree / each).rename(tmp_path / each)
                (tree / each).symlink_to(outside)
    assert found == [found[0]] * 2
    assert b"outside" not in found


def test_a_file_that_is_removed_or_replaced_while_the_cache_is_filled_ends_no_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server that runs then does with its temporary files."""
    (tmp_path / "stays").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("stays")
    with files.opened(tmp_path, os.O_DIRECTORY) as directory:
        listed = [(directory, name) for name in ("removed", "pipe", "link", "stays")]
        monkeypatch.setattr(trees, "files", lambda _: listed)
        page_cache.fill_from(tmp_path)
        assert [os.fstat(found).st_size for found in page_cache._opened_files(tmp_path)] == [1]


def test_of_a_file_with_a_hole_that_is_larger_than_memory_the_data_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study can make one of eight exbibytes: to read it whole would take years."""
    place, known = 1 << 42, os.preadv
    read: set[int] = set()
    with (tmp_path / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(place)
        file.write(b"end")
    monkeypatch.setattr(memory, "total_bytes", lambda: 3 << 20)

    def noted(descriptor: int, buffers: list[bytearray], at: int) -> int:
        read.add(at >> 20)
        assert len(read) < 100
        return known(descriptor, buffers, at)

    monkeypatch.setattr(os, "preadv", noted)
    page_cache.fill_from(tmp_path)
    assert {0, 1, 2, place >> 20} <= read


def test_an_entry_that_cannot_be_undone_for_an_unexpected_reason_keeps_no_other(
    own_directories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone = []

    def undo(target: str) -> None:
        if "broken" in target:
            raise RuntimeError("unexpected")
        undone.append(Path(target).name)

    monkeypatch.setattr(cleanup, "UNDO", {"tree": undo})
    names = [new_id(), new_id()]
    for name, targets in zip(names, (["a", "broken"], ["b"]), strict=True):
        with CampaignJournal(name) as left:
            for target in targets:
                left.will_create("tree", str(own_directories / name / target))
    _, failures = cleanup.clean_all()
    assert sorted(undone) == ["a", "b"]
    assert ["unexpected" in str(failure) for failure in failures] == [True]


def test_a_shared_directory_that_could_not_be_limited_is_removed(own_directories: Path) -> None:
    """Where root may not mount, it is a plain directory with files of the guest."""
    with CampaignJournal(name := new_id()) as left:
        directory = own_directories / name / "guest-1"
        for kind in ("tree", "mount"):
            left.will_create(kind, str(directory))
        directory.mkdir(parents=True)
        (directory / "console").touch()
        assert [entry.kind for entry in cleanup.undo_pending(left)] == ["mount", "tree"]
    assert not directory.exists()
    directory.parent.rmdir()


def test_processes_are_known_by_a_secret_of_the_campaign_and_not_by_its_name(own_directories: Path) -> None:
    with CampaignJournal(name := new_id()) as killed:
        killed.will_create("tree", str(own_directories / name))
        mark = killed.mark
    sleep = ["sleep", str(LIMIT_S)]
    with (
        subprocess.Popen(sleep, env={process_marks.MARK: name, "FSLAB_CAMPAIGN": name}) as other,
        subprocess.Popen(sleep, env={process_marks.MARK: mark}) as ours,
    ):
        cleanup.clean(name)
        assert ours.wait(LIMIT_S) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
    with cleanup.opened_workspace(name, frozenset()) as again:
        assert again.mark not in {mark, name}
        assert stat.S_IMODE((undo_journal.default_directory() / f"{name}.jsonl").stat().st_mode) == 0o600
