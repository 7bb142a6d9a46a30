"""Tests of resuming campaigns from a manipulated store: nothing is run or overwritten without the user's consent.

A store can come from anybody. All attempts here are refused before a trial starts; tests/e2e/test_commands.py has a
case in which a trial runs.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.limits import LIMIT_S, ran
from tests.starter import Starter

from fslab.campaign import launch
from fslab.cell import Cell
from fslab.cli.results import _show_campaigns
from fslab.errors import StoreError
from fslab.store import database_errors
from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store
from fslab.study import load
from fslab.trial_record import Provenance, Severity, ValidityWarning

STUDY = """\
title: to be altered
media: {{here: {{type: directory, path: {path}}}}}
stacks: {{here: {{medium: here}}}}
workloads: {{copy: {{tool: dd, op: write, bs: 4k, count: 1}}}}
trials: 1
"""
Change = Callable[[dict[str, Any]], object]


class Altered:
    """A store with a campaign of one cell, and methods that manipulate it."""

    def __init__(self, directory: Path, starter: Starter) -> None:
        self.starter = starter
        self.store = directory / "store.sqlite"
        study = load.load_text(STUDY.format(path=directory), "study")
        with Store.open(str(self.store)) as store:
            launch.create(launch.of_study(study, "study"), store, launch.RunConditions())

    def execute(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.store)) as database, database:
            database.execute(statement, values)

    def cell(self, change: Change) -> None:
        """Alter the stored cell, and its id to match, as an attacker who knows the format can."""
        spec = self.altered("SELECT spec FROM cells", change)
        self.execute("UPDATE cells SET spec = ?, id = ?", json.dumps(spec), Cell.model_validate(spec).id)

    def campaign(self, column: str, change: Change) -> None:
        """Alter a JSON column of the campaign."""
        altered = self.altered(f"SELECT {column} FROM campaigns", change)
        self.execute(f"UPDATE campaigns SET {column} = ?", json.dumps(altered))

    def altered(self, statement: str, change: Change) -> Any:
        with closing(sqlite3.connect(self.store)) as database:
            ((text,),) = database.execute(statement)
        altered = json.loads(text)
        change(altered)
        return altered

    def refused(self, *more: str) -> str:
        """Resume the campaign with one more trial; check that this is refused and leaves the store unchanged.

        Return the error message in one line.
        """
        before = self.contents()
        argv = ["fslab", "run", "--resume", "last", "--trials", "2", "--store", str(self.store), *more]
        done = self.starter.run(argv, cwd=self.store.parent, timeout_s=LIMIT_S)
        assert done.returncode not in {0, 1}, done.stderr
        assert "Traceback" not in done.stderr
        assert self.contents() == before
        return " ".join(done.stderr.split())

    def contents(self) -> list[tuple[Any, ...]]:
        """Return all rows of the tables of campaigns, cells and trials."""
        with closing(sqlite3.connect(self.store)) as database:
            tables = ("campaigns", "cells", "trials")
            return [row for table in tables for row in database.execute(f"SELECT * FROM {table}")]


@pytest.fixture
def altered(tmp_path: Path, starter: Starter) -> Altered:
    return Altered(tmp_path, starter)


def command(argv: str) -> Change:
    return lambda cell: cell["workload"].update(tool="command", parameters={"run": argv})


def test_more_trials_are_stored_only_with_consent(altered: Altered, tmp_path: Path) -> None:
    altered.cell(command(f"touch {tmp_path}/ran"))
    assert f"touch {tmp_path}/ran" in altered.refused()
    assert not (tmp_path / "ran").exists()


def test_a_cell_that_does_not_fit_its_id_is_not_measured(altered: Altered) -> None:
    altered.execute("UPDATE cells SET id = 'another'")
    assert "was altered in the store" in altered.refused()


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("stack", {"medium": {"name": "here", "type": "ram", "options": {"size": "../../x"}}}),
        ("stack", {"layout_options": {"disks": "x"}}),
        ("workload", {"parameters": {}}),
        ("workload", {"tool": "fio", "parameters": {"rw": "write", "size": "1m", "exec_prerun": "touch ran"}}),
        ("workload", {"tool": "command"}),
        # Files without a stored text: fslab would read the current file, and show its content in an error message.
        ("workload", {"tool": "filebench", "parameters": {"file": "/etc/shadow"}}),
        ("workload", {"tool": "fio", "parameters": {"file": "/etc/shadow"}}),
        ("workload", {"tool": "command", "parameters": {"run": "sh {file}", "file": "/etc/shadow"}}),
        ("workload", {"tool": "mixed", "parameters": {"parts.a.tool": "filebench", "parts.a.file": "/etc/shadow"}}),
    ],
)  # fmt: skip
def test_options_that_no_study_may_have_are_not_taken_from_a_store(
    part: str, changes: dict[str, Any], altered: Altered
) -> None:
    altered.cell(lambda cell: cell[part].update(changes))
    assert "contains data that fslab did not write" in altered.refused()


def test_more_trials_are_stored_only_where_they_can_run(altered: Altered) -> None:
    altered.cell(lambda cell: cell["workload"].update(tool="fio", parameters={"rw": "write", "size": "900t"}))
    assert "needs 900 TiB" in altered.refused()


def test_more_trials_are_stored_only_on_the_machine_they_belong_to(altered: Altered) -> None:
    altered.campaign("machine", lambda machine: machine.update(kernel="9.9.9-other"))
    assert "started on another machine" in altered.refused()


def test_a_kernel_of_the_store_s_own_is_a_program_to_be_asked_about(altered: Altered, tmp_path: Path) -> None:
    """A User-Mode Linux kernel runs as a process on the host. Any program could be named as the kernel."""
    kernel = tmp_path / "kernel"
    kernel.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    kernel.chmod(0o755)

    def change(cell: dict[str, Any]) -> None:
        cell["stack"].update(
            medium={"name": "m", "type": "ram", "options": {"size": "16m"}},
            filesystem="ext4",
            machine={"type": "uml", "kernel": str(kernel)},
        )

    altered.cell(change)
    assert str(kernel) in altered.refused()
    assert not (tmp_path / "ran").exists()


def test_where_a_stored_campaign_makes_files_is_reported(altered: Altered, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    altered.cell(command("true"))
    altered.cell(lambda cell: cell["stack"]["medium"]["options"].update(path=str(other)))
    assert f"writes files in {other}" in altered.refused()


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices are for root")
def test_where_a_stored_campaign_makes_images_is_reported(altered: Altered, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other")
    medium = {"name": "m", "type": "loop", "options": {"size": "16m", "path": f"{tmp_path}/link"}}
    altered.cell(command("true"))
    altered.cell(lambda cell: cell["stack"].update(medium=medium, filesystem="ext4"))
    assert f"writes images in {tmp_path}/other" in altered.refused()


def endless(store: Path | str) -> None:
    """Replace the table of campaigns by a view that has no end, as no store may have that is opened."""
    with closing(sqlite3.connect(store)) as database:
        database.execute("PRAGMA legacy_alter_table = ON")
        for (trigger,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("ALTER TABLE campaigns RENAME TO known")
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        database.execute(f"CREATE VIEW campaigns AS {numbers} SELECT known.* FROM known, n WHERE i < 0")


def test_a_statement_without_an_end_is_ended(altered: Altered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_errors, "STATEMENT_LIMIT_S", 0.1)
    with Store.open(str(altered.store), create=False) as store:
        endless(altered.store)
        with pytest.raises(StoreError, match="interrupted") as caught:
            store.campaigns()
    assert "reading ends after 0.1 s" in (caught.value.hint or "")


SIGNALLED = """
import os, signal, sys, threading
from sqlalchemy import event
from fslab.store.store import Store
from fslab.system import signals
from tests.tools.test_hostile_store import endless
signals.install()
with Store.open(sys.argv[1], create=False) as store:
    endless(sys.argv[1])
    later = threading.Timer(0.2, os.kill, (os.getpid(), int(sys.argv[2])))
    event.listen(store._engine, "before_cursor_execute", lambda *_: later.is_alive() or later.start())
    try:
        store.campaigns()
    except signals.InterruptedBySignal as error:
        print("interrupted", error.exit_code)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_statement(signum: signal.Signals, altered: Altered) -> None:
    argv = [sys.executable, "-c", SIGNALLED, str(altered.store), str(int(signum))]
    root = Path(__file__).parents[2]
    done = ran(argv, cwd=root)
    assert done.stdout == f"interrupted {128 + signum}\n", done.stderr


def test_a_list_of_campaigns_asks_no_questions_for_each(
    altered: Altered, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    with Store.open(str(altered.store), create=False) as store:
        (known,) = store.campaigns()
        for number in range(20):
            store.create_campaign(known.model_copy(update={"id": f"c{number}", "name": None}))
            store.set_campaign_status(f"c{number}", CampaignStatus.FINISHED)
        event.listen(store._engine, "before_cursor_execute", lambda *all_of: asked.append(all_of[2]))
        _show_campaigns(store, as_json=True)
    assert 2 <= len(asked) < 20


@pytest.mark.parametrize(
    "settings",
    [
        {"stopping": {"trials": "inf"}}, {"stopping": {"trials": 10**12}}, {"stopping": {"trials": 1, "precision": -1}},
        {"stopping": []}, {"scale": "-rf"}, {"scale": 0}, {"set": 5}, {"files": ["x"]}, {"directory": {}},
        {"claims": [{"id": []}]}, {"extended_from": "x"}, {"extended_from": ["9" * 30]}, {"ablation": 1},
        {"budget_s": "soon"}, {"user_id": "9" * 30},
    ],
)  # fmt: skip
def test_settings_that_fslab_does_not_write_are_refused(altered: Altered, settings: dict[str, Any]) -> None:
    altered.campaign("settings", lambda known: known.update(settings))
    with (
        Store.open(str(altered.store), create=False) as store,
        pytest.raises(StoreError, match="contains data that fslab did not write"),
    ):
        store.campaign("last")


@pytest.mark.parametrize("limit_s", [0, -1, float("nan"), float("inf")])
def test_a_time_limit_that_is_none_is_refused(altered: Altered, limit_s: float) -> None:
    spec = altered.altered("SELECT spec FROM cells", lambda cell: cell.update(time_limit_s=limit_s))
    altered.execute("UPDATE cells SET spec = ?", json.dumps(spec))
    assert "contains data that fslab did not write: time_limit_s" in altered.refused()


def test_a_memory_that_is_no_size_is_refused(altered: Altered) -> None:
    spec = altered.altered(
        "SELECT spec FROM cells", lambda cell: cell["stack"]["machine"].update(memory="1g init=/x")
    )
    altered.execute("UPDATE cells SET spec = ?", json.dumps(spec))
    assert "contains data that fslab did not write: stack.machine.memory" in altered.refused()


@pytest.mark.parametrize(
    "fact", [{"memory_bytes": "x"}, {"kernel": 6}, {"cpu": 1.5}, {"hostname": []}, {"cpus": []}]
)
def test_facts_that_are_calculated_with_are_of_their_types(altered: Altered, fact: dict[str, Any]) -> None:
    altered.campaign("machine", lambda machine: machine.update(fact))
    assert "contains data that fslab did not write: machine" in altered.refused()


@pytest.mark.parametrize("value", [{}, []])
def test_facts_that_are_nested_deeper_than_they_can_be_exported_are_refused(
    altered: Altered, value: Any
) -> None:
    for _ in range(300):
        value = {"inner": value}
    with pytest.raises(ValueError, match="nested too deeply"):
        Provenance(device=value)
    with pytest.raises(ValueError, match="nested too deeply"):
        ValidityWarning(kind="a", severity=Severity.NOTE, message="m", data=value)
    altered.execute("UPDATE campaigns SET machine = ?", json.dumps(value))
    with Store.open(str(altered.store)) as store, pytest.raises(StoreError, match="nested too deeply"):
        store.campaign("last")


@pytest.mark.parametrize("value", [1e300, 7, b"\xff", "5", "[]"])
def test_a_json_column_of_another_kind_is_refused(altered: Altered, value: object) -> None:
    altered.execute("UPDATE campaigns SET machine = ?", value)
    with (
        Store.open(str(altered.store), create=False) as store,
        pytest.raises(StoreError, match="contains data that fslab did not write"),
    ):
        store.campaign("last")


def test_escapes_that_are_no_characters_stay_escapes(altered: Altered) -> None:
    """JSON can contain lone surrogates. As characters, they could not be written as UTF-8 by any report or export."""
    altered.campaign("machine", lambda machine: machine.update(model="\udcff", kernel="\u00e9"))
    with Store.open(str(altered.store), create=False) as store:
        machine = store.campaign("last").machine
    assert (machine["model"], machine["kernel"]) == ("\\udcff", "\u00e9")


@pytest.mark.skipif(os.geteuid() != 0, reason="devices are for root")
def test_a_stored_campaign_overwrites_no_device_that_is_not_named(altered: Altered) -> None:
    device = "/dev/disk/by-id/fslab-test-of-nobody"

    def change(cell: dict[str, Any]) -> None:
        medium = {"name": "m", "type": "device", "options": {"path": device}}
        cell["stack"].update(medium=medium, filesystem="ext4")

    altered.cell(change)
    said = altered.refused()
    assert f"overwrites {device}" in said
    assert f"would overwrite {device}" in said
