"""Tests of the Python interface, used as in the documentation: a real campaign, read as objects and as a table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab, example
from tests.limits import LIMIT_S, ran

import fslab as api
from fslab.campaign.observer import Observer
from fslab.errors import FslabError, UsageError
from fslab.trial_record import TrialRecord

SMALL = (
    "trials=3", "media.memory.size=320m", "workloads.synced.runtime=200ms", "workloads.files.files=200",
    "stacks.fs.mount_options=defaults",
)  # fmt: skip


def test_import_loads_nothing_and_every_public_name_is_there() -> None:
    code = (
        "import sys, fslab\n"
        "loaded = [name for name in sys.modules if name.startswith(('fslab.', 'pydantic', 'polars', 'rich'))]\n"
        "assert not loaded, loaded\n"
        "assert sorted(dir(fslab)) == sorted(fslab.__all__)\n"
        "assert all(getattr(fslab, name) is not None for name in fslab.__all__)\n"
        "assert set(fslab.__all__) == {*fslab._HOMES, '__version__'}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT_S)
    assert (Path(api.__file__).parent / "py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = api.nothing


@pytest.mark.root
def test_the_example_runs_and_its_results_can_be_read(fslab: Fslab) -> None:
    (fslab.cwd / "first.yaml").write_text(example("tutorial.md", "yaml"))
    (fslab.cwd / "first.py").write_text(example("tutorial-python.md", "python"))
    done = ran([sys.executable, "first.py", "results.sqlite", *SMALL], cwd=fslab.cwd)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("files on ext4 ") >= 3
    assert "4 cells, about" in done.stdout
    with api.open_store(fslab.cwd / "results.sqlite", create=False) as store:
        (results,) = store.campaigns()
        assert results.campaign.status == "finished"
        assert results.conclusion().sentence in done.stdout
        assert (fslab.cwd / f"{results.id}.html").read_text().startswith("<!doctype html>")
        frame = results.frame()
        assert set(frame["stack"]) == {"ext4", "xfs"}
        assert {"IOPS", "ns"} <= set(frame.filter(kind="metric", workload="synced")["unit"])
        assert len(results.trials) >= 12
        assert results.report().rows
        assert results.claims().claims == ()
        assert store.history().study == "first"

        more = api.resume(store, results.id, trials=4)
        assert len(more.trials) >= len(results.trials) + 4
        with pytest.raises(UsageError, match="already plans"):
            api.resume(store, results.id, trials=4)
        assert more.compare(results, force=True).lines
    document = json.loads(fslab("results", "--store", fslab.cwd / "results.sqlite", "--json").stdout)
    assert document["conclusion"]["sentence"] == more.conclusion().sentence, "the command says the same"


@pytest.mark.root
def test_a_study_with_commands_is_refused_and_others_are_observed(tmp_path: Path) -> None:
    study = tmp_path / "own.yaml"
    study.write_text(
        "title: own\nmedia: {m: {type: ram, size: 64m}}\nstacks: {s: {medium: m, filesystem: [ext4, ext2]}}\n"
        'workloads: {w: {tool: command, run: "true", space: 1m}}\ntrials: 1\n'
    )
    seen: list[TrialRecord] = []

    class Seen(Observer):
        def trial_ended(self, record: TrialRecord) -> None:
            seen.append(record)

    with api.open_store(tmp_path / "store.sqlite") as store:
        with pytest.raises(UsageError, match="brings programs that were not allowed"):
            api.run(study, store)
        assert not store.campaigns(), "nothing was stored"
        results = api.run(study, store, allow_commands=True, observer=Seen(), name="mine")
        assert [record.key for record in seen] == [record.key for record in results.trials]
        assert store.campaign("mine").id == results.id


def test_plans_and_mistakes(tmp_path: Path) -> None:
    plan = api.plan_of(api.load("quick", ["trials=2"]))
    assert plan.trials == 2
    assert len(plan.commands) == len(plan.cells)
    with pytest.raises(FslabError, match="did you mean 'quick'"):
        api.load("quik")
    assert "quick" in api.shipped_studies()
