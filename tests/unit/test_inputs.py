"""Tests of files that a study names: a cell contains their text, which is stored, run and compared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fslab.analysis.matching import MatchedBy, match
from fslab.api import agreement
from fslab.cell import Cell
from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.study.inputs import MOST_BYTES
from fslab.study.load import load, load_text
from fslab.workloads import REGISTRY, Job

STUDY = """\
title: t
media: {m: {type: ram, size: 2g}}
stacks: {s: {medium: m, filesystem: ext4}}
workloads: {w: {tool: filebench, file: %s}}
"""
SCRIPT = "define fileset name=a,path=/tmp,entries=9\nrun 1\n"


def cell_of(directory: Path, script: str, name: str = "mine.f") -> Cell:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(script)
    (directory / "s.yaml").write_text(STUDY % name)
    (cell,) = expand(load(directory / "s.yaml"))
    return cell


def test_the_text_is_the_identity_and_its_place_is_not(tmp_path: Path) -> None:
    one = cell_of(tmp_path / "a", SCRIPT)
    assert one.workload.parameters["file_text"] == SCRIPT
    assert cell_of(tmp_path / "b", SCRIPT).id == one.id
    other = cell_of(tmp_path / "a", SCRIPT.replace("entries=9", "entries=10"))
    assert other.id != one.id
    (partners,) = match([one], [other], MatchedBy.STACK).partners
    assert "parameters.file_text" in {difference.fact for difference in partners.differences}


def test_what_runs_is_the_stored_text(tmp_path: Path) -> None:
    cell = Cell.model_validate_json(cell_of(tmp_path, SCRIPT).model_dump_json())
    (tmp_path / "mine.f").write_text("something else")
    tool = REGISTRY.get("filebench")
    job = Job(directory=Path("/w"), scratch=Path("/s"), seed=1)
    commands = tool.commands(tool.parse_parameters(cell.workload.parameters), job)
    ((name, text),) = commands.inputs.items()
    assert text == SCRIPT
    assert f"/s/{name}" in commands.run


def test_a_campaign_knows_its_files_without_them(tmp_path: Path) -> None:
    cell_of(tmp_path, SCRIPT)
    study = load(tmp_path / "s.yaml")
    (tmp_path / "mine.f").unlink()
    again = load_text(study.text, "s.yaml", files=study.files)
    assert expand(again) == expand(study)
    settings: dict[str, object] = {"files": study.files, "directory": str(tmp_path)}
    assert agreement.changed_files(settings) == [
        "'mine.f' has changed since the campaign started: its stored text is used"
    ]
    (tmp_path / "mine.f").write_text(SCRIPT)
    assert agreement.changed_files(settings) == []


def test_each_value_of_a_list_has_its_own_text(tmp_path: Path) -> None:
    (tmp_path / "one.f").write_text(SCRIPT)
    (tmp_path / "two.f").write_text(SCRIPT * 2)
    (tmp_path / "s.yaml").write_text(STUDY % "[one.f, two.f]")
    found = {cell.workload.name: cell.workload.parameters for cell in expand(load(tmp_path / "s.yaml"))}
    assert found["w[file=one.f]"]["file_text"] == SCRIPT
    assert found["w[file=two.f]"]["file_text"] == SCRIPT * 2


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda path: None, "there is no file"),
        (lambda path: path.mkdir(), "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "is not UTF-8 text"),
        (lambda path: path.write_bytes(b"a" * (MOST_BYTES + 1)), "is larger than 1 MiB"),
    ],
)
def test_what_is_no_text_is_a_mistake_with_its_line(tmp_path: Path, make: object, what: str) -> None:
    assert callable(make)
    make(tmp_path / "mine.f")
    (tmp_path / "s.yaml").write_text(STUDY % "mine.f")
    with pytest.raises(StudyError, match=rf"s.yaml:4: workloads.w.file: .*{what}"):
        load(tmp_path / "s.yaml")
