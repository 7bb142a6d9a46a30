"""Tests of files that a study names: a cell contains their text, which is stored, run and compared."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.made import campaign

from fslab.analysis.matching_cells import MatchedBy, match
from fslab.campaign import consent
from fslab.cell import Cell
from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.study import load as load_module
from fslab.study.inputs import MOST_BYTES, input_place
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
    started = campaign("c").with_settings(files=study.files, directory=str(tmp_path))
    assert consent.changed_files(started) == [
        "'mine.f' has changed since the campaign started: its stored text is used"
    ]
    (tmp_path / "mine.f").write_text(SCRIPT)
    assert consent.changed_files(started) == []


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
        (lambda path: path.write_bytes(b"\xff\xfe"), "is not UTF-8 text: save it as UTF-8"),
        (lambda path: path.write_bytes(b"a" * (MOST_BYTES + 1)), "is larger than 1 MiB"),
    ],
)
def test_what_is_no_text_is_a_mistake_with_its_line(tmp_path: Path, make: object, what: str) -> None:
    assert callable(make)
    make(tmp_path / "mine.f")
    (tmp_path / "s.yaml").write_text(STUDY % "mine.f")
    with pytest.raises(StudyError, match=rf"s.yaml:4: workloads.w.file: .*{what}"):
        load(tmp_path / "s.yaml")


SECRET = "root:$6$secret:20000:0:99999:7:::"
FIGURES = "published: {figures: %s}\n"


class TestOtherFiles:
    """A study may come from anybody, and root runs it: it reads and shows nothing that lies elsewhere."""

    def study(self, place: Path, text: str) -> Path:
        (place / "study/below").mkdir(parents=True)
        (place / "secret").write_text(SECRET)
        (place / "study/link").symlink_to(place / "secret")
        (place / "study/up").symlink_to(place)
        (place / "study/below/job.fio").write_text("[a]\nrw=write\nsize=1m\n")
        study = place / "study/s.yaml"
        study.write_text(text)
        return study

    @pytest.mark.parametrize(
        "name", ["../secret", "{place}/secret", "link", "up/secret", "below/../../secret"]
    )
    @pytest.mark.parametrize("key", ["fio", "figures"])
    def test_are_refused_without_a_word_of_their_content(self, name: str, key: str, tmp_path: Path) -> None:
        name = name.format(place=tmp_path)
        text = STUDY.replace("filebench", "fio") % (name if key == "fio" else "below/job.fio")
        study = self.study(tmp_path, text + (FIGURES % name if key == "figures" else ""))
        with pytest.raises(StudyError) as refused:
            load(study)
        said = str(refused.value)
        assert "is not in the study's directory or below" in said
        assert "--allow-path" in said
        assert "secret:" not in said

    def test_are_not_read_through_a_process(self, tmp_path: Path) -> None:
        """In its mount namespace, its owner can mount any file over one of the study, also one that only root reads."""
        study = self.study(tmp_path, STUDY % "far")
        (study.parent / "near").write_text(SECRET)
        (study.parent / "far").symlink_to(f"/proc/{os.getpid()}/root{study.parent}/near")
        with pytest.raises(
            StudyError, match=r"far' cannot be read: Too many levels of symbolic links"
        ) as refused:
            load(study)
        assert "secret:" not in str(refused.value)

    def test_are_read_where_the_user_allows_it(self, tmp_path: Path) -> None:
        study = self.study(tmp_path, STUDY % "../secret")
        assert load(study, allow_paths=[tmp_path]).files == {"../secret": SECRET}
        with pytest.raises(StudyError, match="--allow-path"):
            load(study, allow_paths=[tmp_path / "study/below"])

    def test_are_not_read_if_the_kernel_makes_them_meanwhile(self) -> None:
        """/proc/kmsg is a regular file, too: reading it waits for messages, and takes them from the system's log."""
        assert Path("/proc/version").read_text()
        assert input_place(Path("/proc")).text_of("version") == ""

    def test_below_the_study_are_read(self, tmp_path: Path) -> None:
        study = self.study(tmp_path, STUDY.replace("filebench", "fio") % "below/job.fio")
        assert list(load(study).files) == ["below/job.fio"]

    def test_a_directory_exchanged_while_the_study_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        study = self.study(tmp_path, STUDY % "secret")
        real = load_module.load_text

        def exchanged(*given: object, **more: object) -> object:
            study.parent.rename(tmp_path / "away")
            study.parent.symlink_to(tmp_path)
            return real(*given, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(load_module, "load_text", exchanged)
        with pytest.raises(StudyError, match="is not in the study's directory"):
            load(study)

    def test_a_pipe_put_in_the_place_of_a_file_does_not_block(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was checked is what is opened."""
        (tmp_path / "a").write_text("text")
        real = os.fstat

        def exchanged(descriptor: int) -> os.stat_result:
            about = real(descriptor)
            if stat.S_ISREG(about.st_mode):
                (tmp_path / "a").unlink()
                os.mkfifo(tmp_path / "a")
                monkeypatch.setattr(os, "fstat", real)
            return about

        monkeypatch.setattr(os, "fstat", exchanged)
        assert input_place(tmp_path).text_of("a") == "text"
