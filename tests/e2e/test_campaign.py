"""Tests of whole campaigns: run to the end, killed and resumed, interrupted, out of budget."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Fslab, end
from tests.hold import Hold, mark_of
from tests.limits import LIMIT_S

import fslab as api
from fslab.system import loop_devices, memory, mountinfo, paths, process_marks

pytestmark = pytest.mark.root

STUDY = """
title: two file systems
media: {memory: {type: ram, size: 320m, room: 320m}}
stacks: {fs: {medium: memory, filesystem: [ext4, xfs]}}
workloads:
  files: {tool: engine, operation: small-files, files: 2000, size: 4k, operations: "create,delete"}
  write: {tool: fio, rw: randwrite, bs: 4k, iodepth: 8, direct: true, size: 8m, io_size: 4m}
trials: 2
cache: warm
"""


HELD = """
title: held
media: {{memory: {{type: ram, size: 320m, room: 320m}}}}
stacks: {{fs: {{medium: memory, filesystem: [ext4, xfs]}}}}
workloads:
  files: {{tool: engine, operation: small-files, files: 200, size: 4k, operations: "create,delete"}}
  held: {{tool: command, run: {run}, space: 1m}}
trials: 3
cache: warm
"""


@pytest.fixture
def held(tmp_path: Path, hold: Hold) -> Path:
    """Return a study with 12 trials. 6 of them wait in their measured run until the test releases them."""
    path = tmp_path / "held.yaml"
    path.write_text(HELD.format(run=hold.run))
    return path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(STUDY)
    return path


def ours(own: Path) -> list[str]:
    """Return the journals and images of the test's campaigns that still exist."""
    return [str(path) for pattern in ("*.img", "*.jsonl") for path in own.rglob(pattern)]


def identities(trials: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    return Counter((trial["cell"]["id"], trial["block"]) for trial in trials)


def planned(trials: list[dict[str, Any]]) -> int:
    """Return how many of the trials the study asks for. On a busy machine, others replace invalid ones."""
    return sum(trial["block"] < 2 for trial in trials)


def test_a_campaign_ends_with_the_table_and_its_path(fslab: Fslab, study: Path) -> None:
    done = fslab("run", study)
    assert "two file systems" in done.stdout
    for word in ("ext4", "xfs", "files", "write", "how much better", "store.sqlite", "fslab results"):
        assert word in done.stdout
    assert "[8/8]" in done.stderr
    trials = fslab.trials()
    assert planned(trials) == 8
    assert set(identities(trials).values()) == {1}
    for trial in trials:
        assert trial["status"] in {"ok", "invalid"}
        assert trial["stack"]["medium"] == "ram"
        assert trial["provenance"]["commands"]
        assert trial["provenance"]["machine"]["kernel"]
        assert all(set(value) == {"value", "unit"} for value in trial["metrics"].values())
    blocks = [trial["block"] for trial in trials]
    assert blocks == sorted(blocks), "trials are interleaved block by block"
    assert fslab.json("results", "--json")["counts"]["stored"] == len(trials)
    assert "finished" in fslab("results", "--list").stdout


def test_killed_in_the_middle_it_is_finished_without_losing_or_repeating_a_trial(
    fslab: Fslab, held: Path, hold: Hold, own_directories: Path
) -> None:
    process = fslab.start("run", held, "--allow-commands")
    for _ in range(3):
        hold.reached(process)
        hold.release()
    hold.reached(process)  # a workload runs on a mounted file system
    journal = next((own_directories / "state").rglob("*.jsonl"))
    campaign, mark = journal.stem, mark_of(journal)
    assert process_marks.marked_processes(mark)
    assert loops_of(campaign)
    end(process, signal.SIGKILL)
    before = fslab.trials()
    assert 3 <= len(before) < 12
    assert ours(own_directories), "the kill came too late to leave anything"
    assert "interrupted" in fslab("results").stdout

    hold.release_all()
    done = fslab("run", "--resume", "--allow-commands")
    assert "removed what an earlier run left behind" in done.stderr
    after = fslab.trials()
    assert identities(after) == Counter(dict.fromkeys(identities(after), 1))
    assert len(after) == 12
    kept = {(trial["cell"]["id"], trial["block"]): trial["started"] for trial in after}
    assert all(kept[trial["cell"]["id"], trial["block"]] == trial["started"] for trial in before)
    assert not ours(own_directories)
    assert not loops_of(campaign)
    assert not process_marks.marked_processes(mark)


def loops_of(campaign: str) -> list[Path]:
    image = paths.runtime() / campaign / "ram-memory" / f"fslab-{campaign}-memory.img"
    return loop_devices.attached_to(image)


def test_clean_undoes_what_a_kill_left(fslab: Fslab, held: Path, hold: Hold, own_directories: Path) -> None:
    process = fslab.start("run", held, "--allow-commands")
    hold.reached(process)
    assert is_mounted(own_directories)
    end(process, signal.SIGKILL)
    said = fslab("clean").stdout
    assert "mount" in said
    assert "image" in said
    assert not ours(own_directories)
    assert "nothing to remove" in fslab("clean").stdout


KEPT = """
title: kept copies
seed: 4  # the workload that waits comes last
media: {{memory: {{type: ram, size: 320m, room: 320m}}}}
stacks: {{fs: {{medium: memory, filesystem: ext4}}}}
workloads:
  analyze: {{tool: engine, operation: analyze, scale: 0.0001, threads: 1}}
  read: {{tool: engine, operation: sync-read, scale: 0.0001, threads: 1}}
  held: {{tool: command, run: {run}, space: 1m}}
trials: 1
fresh: block
"""


def test_kept_copies_of_a_killed_campaign_are_removed(fslab: Fslab, hold: Hold, tmp_path: Path) -> None:
    study = tmp_path / "kept.yaml"
    study.write_text(KEPT.format(run=hold.run))
    process = fslab.start("run", study, "--allow-commands")
    hold.reached(process)
    (campaign,) = (each["campaign"] for each in fslab.json("results", "--list", "--json"))
    copies = list(memory.SHARED.glob(f"fslab-{campaign}*copy*.img"))
    assert copies
    end(process, signal.SIGKILL)
    hold.release_all()
    fslab("run", "--resume", "--allow-commands")
    assert not [path for path in copies if path.exists()]
    assert len(fslab.trials()) == 3


def is_mounted(own: Path) -> bool:
    """Return whether the test's campaign has its file system mounted."""
    journals = {path.stem for path in (own / "state").rglob("*.jsonl")}
    return any(
        mount.target == paths.runtime() / name / "mnt" for mount in mountinfo.mounted() for name in journals
    )


def test_clean_leaves_a_running_campaign_alone(
    fslab: Fslab, held: Path, hold: Hold, own_directories: Path
) -> None:
    process = fslab.start("run", held, "--allow-commands", "--trials", "1")
    hold.reached(process)
    assert "nothing to remove" in fslab("clean").stdout
    assert is_mounted(own_directories)
    hold.release_all()
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, said


@pytest.mark.parametrize(
    "signum",
    [
        signal.SIGINT,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_a_signal_unwinds_and_says_how_to_go_on(
    signum: signal.Signals, fslab: Fslab, held: Path, hold: Hold, own_directories: Path
) -> None:
    process = fslab.start("run", held, "--allow-commands")
    for _ in range(2):
        hold.reached(process)
        hold.release()
    hold.reached(process)
    shown, said = end(process, signum)
    assert process.returncode == 128 + signum
    assert said.endswith("fslab: interrupted\n")
    assert shown.count("fslab run --resume") == 1
    _, _, so_far = shown.partition("interrupted; the results so far:\n")
    assert "complete block" in so_far
    assert f"finish it: fslab run --resume {fslab.json('results', '--json')['campaign']}" in so_far
    assert not ours(own_directories)
    stored = len(fslab.trials())
    assert 2 <= stored < 12
    assert fslab.json("results", "--json")["status"] == "interrupted"


def test_a_budget_stops_in_time_and_can_be_extended(fslab: Fslab, study: Path) -> None:
    fslab("run", study, "--budget", "2s")
    found = fslab.json("results", "--json")
    assert found["status"] == "budget_spent"
    assert 0 < found["counts"]["stored"] < 8
    fslab("run", "--resume", "--budget", "5m")
    assert fslab.json("results", "--json")["status"] == "finished"


def test_a_resumed_campaign_has_its_budget_once_more(fslab: Fslab, study: Path) -> None:
    fslab("run", study, "--budget", "0.000001s")
    assert "is spent" in fslab("run", "--resume", "--quiet").stderr
    assert fslab.json("results", "--json")["counts"]["stored"] == 0
    said: list[str] = []

    class Told(api.Observer):
        def note(self, text: str) -> None:
            said.append(text)

    with api.open_store(create=False) as store:
        assert api.resume(store).report().counts.stored == 0
        api.resume(store, budget_s=0.0, observer=Told())  # as replicate --run, which has only the rest
    assert "nothing is left of the budget of " in said[-1]


def test_a_finished_campaign_is_given_more_trials(fslab: Fslab, study: Path) -> None:
    fslab("run", study, "--trials", "1", "--scale", "0.5")
    (before,) = fslab.json("results", "--list", "--json")
    fslab("run", "--resume", before["campaign"], "--trials", "2")
    (after,) = fslab.json("results", "--list", "--json")
    assert after["trials"] >= before["trials"] + 4
    assert (before["status"], after["status"]) == ("finished", "finished")
    assert {trial["block"] for trial in fslab.trials()} >= {0, 1}
    refused = fslab("run", "--resume", before["campaign"], "--trials", "2", code=2)
    assert "already" in refused.stderr
    assert "--trials N, with N from 3 to 100000" in refused.stderr


def test_a_failing_cell_does_not_stop_the_others(fslab: Fslab, tmp_path: Path) -> None:
    path = tmp_path / "endless.yaml"
    path.write_text(HELD.format(run="sleep 1000"))
    changes = ("stacks.fs.filesystem=ext4", "time_limit=11s", "workloads.files.files=100")
    fslab("run", path, "--allow-commands", *(word for change in changes for word in ("--set", change)))
    statuses = Counter((trial["workload"]["name"], trial["status"]) for trial in fslab.trials())
    assert statuses["held", "failed:timed_out"] == 2, "given up after two failures in a row"
    assert sum(count for (name, _), count in statuses.items() if name == "files") == 3
