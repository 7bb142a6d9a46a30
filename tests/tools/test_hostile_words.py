"""Tests with hostile text in a store: no command prints control characters to a terminal or interprets markup."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.browser import campaigns
from tests.limits import LIMIT_S
from tests.made import CELL
from tests.starter import Starter

from fslab.cell import Cell
from fslab.cli.common import print_json
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.trial_record import TrialRecord

# Sets the terminal's title; a C1 control and a change of text direction; Rich's markup: a closing tag without an
# opening one, the name of an emoji, a style.
EVIL = "\x1b]0;evil\x07 \x9b31m \u202e [/evil] :bomb: [red]"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
KEPT = {"fresh", "cache", "geometry", "unit", "campaign", "status", "severity", "kind", "tool"}
VERBS = [
    ["results"], ["results", "--all", "--notes"], ["results", "--json"],
    ["results", "--list"], ["results", "--list", "--json"],
    ["report", "-f", "md", "-o", "-"], ["report", "-f", "latex", "-o", "-"], ["export", "-f", "json"],
    ["export", "-f", "csv"],
    ["compare", "last~1", "last", "--force"], ["compare", "last~1", "last", "--force", "--json"], ["history"],
    ["explain", "--all"], ["note"], ["delete", "last"], ["store", "check"],
    ["run", "--resume", "last"],
]  # fmt: skip


def hostile(value: Any, key: str = "") -> Any:
    """Return a copy of a document with EVIL appended to every text, except where only certain values are valid."""
    match value:
        case dict():
            return {name: each if name in KEPT else hostile(each, name) for name, each in value.items()}
        case list():
            return [hostile(each, key) for each in value]
        case str():
            return value + EVIL
    return value


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a store with two campaigns that have hostile text wherever it can be stored."""
    path = tmp_path_factory.mktemp("hostile") / "store.sqlite"
    campaign, trials = campaigns.small()
    machine = {**hostile(campaign.machine), "kernel": "6.18\n\\input{evil}" + EVIL}
    with Store.open(str(path)) as opened:
        for name in ("one", "two"):
            evil = {cell.id: _cell(cell) for cell in campaign.cells}
            words = {
                "study_title": EVIL,
                "study_id": f"s{EVIL}",
                "note": EVIL,
                "machine": machine,
            }
            cells = tuple(evil.values())
            opened.create_campaign(
                Campaign.model_construct(**{**dict(campaign), **words, "id": name, "cells": cells})
            )
            for trial in trials:
                opened.add_trial(_trial(trial, evil[trial.cell.id], name))
    return path


def _cell(cell: Cell) -> Cell:
    document = hostile(cell.model_dump(mode="json"))
    document["stack"]["medium"]["name"] = cell.stack.medium.name
    document["workload"]["parameters"] = dict(cell.workload.parameters)
    return Cell.model_validate(document)


def _trial(trial: TrialRecord, cell: Cell, campaign: str) -> TrialRecord:
    words = {
        "cell": cell, "key": trial.key.model_copy(update={"campaign": campaign}), "error": EVIL,
        "metrics": {**trial.metrics, f"more{EVIL}": next(iter(trial.metrics.values()))} if trial.metrics else {},
        "provenance": type(trial.provenance).model_validate(hostile(trial.provenance.model_dump(mode="json"))),
    }  # fmt: skip
    return trial.model_copy(update=words)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_no_verb_prints_what_a_terminal_obeys(
    verb: list[str], store: Path, starter: Starter, tmp_path: Path
) -> None:
    done = starter.run(["fslab", *verb, "--store", str(store)], cwd=tmp_path, timeout_s=LIMIT_S)
    assert "Traceback" not in done.stderr
    assert done.stdout + done.stderr
    assert CONTROL.findall(done.stdout + done.stderr) == []
    if "--json" in verb and done.returncode == 0:
        json.loads(done.stdout)


def test_a_table_shows_what_is_like_markup_as_it_is(store: Path, starter: Starter, tmp_path: Path) -> None:
    done = starter.run(["fslab", "results", "--all", "--store", str(store)], cwd=tmp_path, timeout_s=LIMIT_S)
    assert "[/evil] :bomb:" in done.stdout


def test_no_word_leaves_a_comment_of_latex(store: Path, starter: Starter, tmp_path: Path) -> None:
    argv = ["fslab", "report", "-f", "latex", "-o", "-", "--store", str(store)]
    said = starter.run(argv, cwd=tmp_path, timeout_s=LIMIT_S).stdout
    assert r"\input{evil}" in said
    assert [line for line in said.splitlines() if line.startswith(r"\input")] == []


@pytest.mark.parametrize(
    "verb",
    [
        ["export", "-f", "csv"],
        ["export", "-f", "json", "-o", "/dev/stdout"],
        ["report", "-o", "-"],
        ["report", "-f", "latex", "-o", "/dev/stderr"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_a_terminal_is_text_too(
    verb: list[str], store: Path, starter: Starter, tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    process = starter.start(["fslab", *verb, "--store", str(store)], cwd=tmp_path, terminal=theirs)
    said = b""
    while select.select([ours], [], [], LIMIT_S)[0]:
        try:
            said += os.read(ours, 1 << 16)
        except OSError:  # EIO: the other side is closed
            break
    os.close(ours)
    assert process.wait(LIMIT_S) == 0
    assert b"evil" in said
    assert CONTROL.findall(said.decode().replace("\r\n", "\n")) == []


def test_a_name_that_is_not_utf_8_is_printed_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", printed := io.StringIO())
    print_json({"\udcff": CELL.stack.medium})
    assert json.loads(printed.getvalue()) == {"\udcff": CELL.stack.medium.model_dump()}
