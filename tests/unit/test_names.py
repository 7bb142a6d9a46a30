"""Tests of names that become paths, environments and locks: one rule applies wherever they are read."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests import made

from fslab import untrusted_text
from fslab.campaign.undo_journal import CampaignJournal, is_running, leftover
from fslab.cell import MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.errors import FslabError, NoSpaceError, StoreError
from fslab.names import LONGEST_FILE_NAME, file_name, is_word, short_word
from fslab.report.figures import Figure, paper, styles
from fslab.store import Format, export, rows
from fslab.store.export import render
from fslab.store.store import Store
from fslab.study.matrix import medium_specs
from fslab.study.model import StudyMedium
from fslab.trial_record import Severity, Status, ValidityWarning

HOSTILE = ["../ESC", "/etc/x", "a/b", "", ".", "..", ".hidden", "-rf", "a\0b", "a\nb", "a b", "x" * 129, "ä"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_leads_elsewhere_is_none(name: str, tmp_path: Path) -> None:
    assert not is_word(name)
    with pytest.raises(ValidationError, match="is not a valid name"):
        made.campaign(name)
    with pytest.raises(ValidationError, match="is not a valid name"):
        TrialKey(campaign=name, block=0, seed=1)
    with pytest.raises(ValidationError, match="is not a valid name"):
        MediumSpec(name=name, type="ram")
    with pytest.raises(FslabError, match="not a valid campaign id"):
        CampaignJournal(name, tmp_path / "journal")
    assert not is_running(name, tmp_path)


@pytest.mark.parametrize("name", ["20261121-010203-ab12", "c", "a.b_c+d-e", "x" * 128])
def test_names_of_ours(name: str) -> None:
    assert made.campaign(name).id == TrialKey(campaign=name, block=0, seed=1).campaign == name


@pytest.mark.parametrize("column", ["id", "cells", "machine"])
def test_a_hostile_store_is_an_error_and_not_a_path(tmp_path: Path, column: str) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        store.create_campaign(made.campaign("c1"))
    with closing(sqlite3.connect(path)) as connection, connection:
        if column == "id":
            connection.execute("UPDATE campaigns SET id = '../ESC'")
        elif column == "cells":
            hostile = json.dumps({**made.CELL.model_dump(mode="json"), "cache": "elsewhere"})
            connection.execute("UPDATE cells SET spec = ?", [hostile])
        else:
            connection.execute("UPDATE campaigns SET machine = ?", ["[" * 200_000])
    with Store.open(str(path)) as store:
        with pytest.raises(StoreError, match="contains data that fslab did not write"):
            store.campaign()
        assert store.campaigns() == []


def test_compressed_output_that_stands_for_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "RAW_LIMIT_BYTES", 1000)
    assert rows._inflated(zlib.compress(b"x" * 1000)) == b"x" * 1000
    with pytest.raises(ValueError, match="more than"):
        rows._inflated(zlib.compress(b"x" * 1001))


def test_the_output_of_all_trials_together_has_a_limit() -> None:
    outputs, row = rows.Outputs(left_bytes=2500), {"name": "stdout", "zlib": zlib.compress(b"x" * 1000)}
    assert [outputs.of([row]) for _ in range(2)] == [{"stdout": "x" * 1000}] * 2  # type: ignore[list-item]
    with pytest.raises(NoSpaceError, match="needs more than a quarter of the available memory"):
        outputs.of([row])  # type: ignore[list-item]


def test_numbers_of_json_have_64_bits() -> None:
    assert untrusted_text.json_of(f"[{2**64 - 1}, -{2**63}, 1e300, 0.12345678901234567890123]")[:2] == [
        2**64 - 1,
        -(2**63),
    ]
    for read in (untrusted_text.json_of, untrusted_text.first_json):
        with pytest.raises(ValueError, match="more than 64 bits"):
            read("[1" + "0" * 400 + "]")


@pytest.mark.parametrize("change", [{"campaign": "../ESC"}, {"seed": "[" * 50}, {"spec": 5}, {"metrics": 5}])
def test_a_hostile_export(tmp_path: Path, change: dict[str, object]) -> None:
    (trial,) = json.loads(render([made.trial()], Format.JSON))
    file = tmp_path / "trials.json"
    file.write_text(json.dumps([{**trial, **change}]))
    with pytest.raises(StoreError, match="is not an exported trial"):
        export.read(file)


@pytest.mark.parametrize("written", ["Infinity", "-Infinity", "NaN", "1e999"])
def test_a_figure_that_is_no_finite_number_is_unknown(written: str, tmp_path: Path) -> None:
    record = made.trial(metrics=made.iops(12.25), probes=made.iops(12.25))
    file = tmp_path / "trials.json"
    file.write_bytes(render([record], Format.JSON).replace(b"12.25", written.encode()))
    (trial,) = export.read(file).trials
    assert trial.metrics["write_iops"].value is trial.probes["write_iops"].value is None


def test_an_export_with_half_a_character_is_read_as_a_store_is(tmp_path: Path) -> None:
    """JSON can contain lone surrogates, of which a cell has no digest and a report no text."""
    half = made.trial(of=made.cell(made.spec(mkfs_options="half")), error="half")
    file = tmp_path / "trials.json"
    file.write_bytes(render([half], Format.JSON).replace(b'"half"', b'"\\ud800"'))
    (trial,) = export.read(file).trials
    assert trial.cell.id
    assert trial.error == trial.cell.stack.mkfs_options == "\\ud800"


def test_an_export_nested_without_end(tmp_path: Path) -> None:
    file = tmp_path / "trials.json"
    file.write_text("[" * 200_000)
    with pytest.raises(StoreError, match="is not JSON"):
        export.read(file)


def test_journals_of_other_names_are_none_of_ours(tmp_path: Path) -> None:
    for name in ("c1.jsonl", "-rf.jsonl", "a b.jsonl", ".jsonl"):
        (tmp_path / name).touch()
    assert [*leftover(tmp_path)] == ["c1"]


@pytest.mark.parametrize("text", [*HOSTILE, "x" * 5000, "ä" * 5000, "a\\b", "\ud800"])
def test_any_text_makes_a_file_name_that_stays_in_its_directory(text: str, tmp_path: Path) -> None:
    name = file_name(text)
    assert (tmp_path / name).parent == tmp_path
    assert not name.startswith((".", "-"))
    assert 0 < len(name.encode()) <= LONGEST_FILE_NAME
    (tmp_path / name).touch(exist_ok=False)


def test_file_names_of_different_texts_differ() -> None:
    texts = ["a/b", "a_b", "a\0b", "x" * 300, "x" * 301]
    assert len({file_name(text) for text in texts}) == len(texts)
    assert file_name("randwrite[bs=4k]") == "randwrite[bs=4k]"


def test_figures_stay_in_their_directory(tmp_path: Path) -> None:
    values = [{"x": 1, "stack": "var(--evil)"}, {"x": 2, "stack": "on var(--ink)"}]
    mark = {"type": "point", "color": "var(--ink)"}
    spec = {
        "mark": mark,
        "data": {"values": values},
        "encoding": {"x": {"field": "x"}, "y": {"field": "stack"}},
    }
    figures = [
        Figure(id=key, title="t", caption="", alt="", spec=spec, marks={})
        for key in ("../../escaped\0", "x" * 400)
    ]
    written = paper.write(figures, tmp_path / "in")
    assert len(written) == 4
    assert {path.parent for path in written} == {tmp_path / "in"}
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    drawn = written[0].read_text()
    assert "var(--evil)" in drawn
    assert "on var(--ink)" in drawn
    assert styles.LIGHT["ink"] in drawn


def test_a_medium_that_varies_in_long_values_has_a_short_name() -> None:
    medium = StudyMedium(type="loop", options={"path": ["/" + "d" * 200 + end for end in "ab"]})
    names = {spec.name for spec in medium_specs("m", medium)}
    assert len(names) == 2
    assert all(map(is_word, names))
    assert short_word("x" * 128) == "x" * 128


def test_names_and_messages_do_not_command_the_terminal() -> None:
    """Spaces replace control characters. A file from another user could otherwise set the clipboard (OSC 52), or hide
    earlier output."""
    evil, harmless = "a\x1b]52;c;eA==\x07\x9b2Jb\r\tc\n", "a ]52;c;eA==  2Jb \tc\n"
    medium = MediumSpec(name="m", type="ram")
    record = made.trial(status=Status.FAILED, error=evil)
    warning = ValidityWarning(kind="x", severity=Severity.NOTE, message=evil, hint=evil)
    assert made.campaign(study_title=evil).study_title == harmless
    for found in (
        StackSpec(name=evil, medium=medium).name, WorkloadSpec(name=evil, tool="fio").name, record.error,
        warning.message, warning.hint,
    ):  # fmt: skip
        assert found == harmless
