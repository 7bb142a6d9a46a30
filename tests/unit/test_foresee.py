"""Tests that ``fslab plan`` predicts what ``fslab run`` refuses, with the same reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from fslab import feasibility
from fslab.cell import Cell
from fslab.errors import FslabError
from fslab.machine.kinds import Need
from fslab.plan.expand import expand
from fslab.study.load import load_text
from fslab.system import memory, rights

STUDY = """\
title: t
media: {m: {type: ram, size: SIZE}}
stacks: {fs: {medium: m, filesystem: [ext4, f2fs]}}
workloads: {w: {tool: fio, rw: write, bs: 1m, size: 8m, direct: true}}
"""


@pytest.fixture(autouse=True)
def no_f2fs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report f2fs alone as missing, whatever this kernel supports, and the user as root. The memory is not changed."""

    def missing(name: str, spec: object) -> tuple[Need, ...]:
        return (Need(what="Linux has no f2fs"),) if name == "f2fs" else ()

    monkeypatch.setattr(feasibility._machines, "missing_filesystem", missing)
    monkeypatch.setattr(rights, "missing_for_mounts", lambda: None)


def cells(size: str) -> tuple[Cell, ...]:
    return expand(load_text(STUDY.replace("SIZE", size), "s.yaml"))


def test_a_file_system_that_the_kernel_lacks_is_foreseen(tmp_path: Path) -> None:
    found, refused = feasibility.foresee(cells("64m"), tmp_path)
    (reason,) = found.values()
    assert "Linux has no f2fs" in reason
    assert refused == ()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("tool", ["crash", "recovery", "io-errors"])
def test_a_tool_that_drives_the_disk_has_one(tool: str, tmp_path: Path) -> None:
    """On another medium each of its trials failed."""
    plain = "title: t\nmedia: {m: {type: ram, size: 512m}}\nstacks: {s: {medium: m, filesystem: ext4}}\n"
    plain += f"workloads: {{w: {{tool: {tool}}}}}\n"
    virtual = plain.replace("type: ram", "type: virtual, profile: none, log: data")
    for text, possible in ((plain, False), (virtual, True)):
        found, _ = feasibility.foresee(expand(load_text(text, "s.yaml")), tmp_path)
        assert ["needs one virtual disk" in why for why in found.values()] == ([] if possible else [True])
    found, _ = feasibility.foresee(expand(load_text(virtual.replace(", log: data", ""), "s.yaml")), tmp_path)
    assert ["reads the log" in why for why in found.values()] == ([] if tool == "recovery" else [True])


@pytest.mark.parametrize(
    "medium",
    ["loop, size: 64m, path: NAME", "directory, path: NAME", "device, path: /dev/disk/by-id/no-disk"],
)
def test_a_place_that_there_is_not_is_foreseen_in_the_words_of_run(medium: str, tmp_path: Path) -> None:
    medium = medium.replace("NAME", str(tmp_path / "none"))
    text = STUDY.replace("ram, size: SIZE", medium)
    if "directory" in medium:
        text = text.replace(", filesystem: [ext4, f2fs]", "")
    planned = expand(load_text(text, "s.yaml"))
    _, refused = feasibility.foresee(planned, tmp_path)
    with pytest.raises(FslabError) as stopped:
        feasibility.check("c", planned, frozenset())
    assert refused == (str(stopped.value),)


def test_memory_that_there_is_not_is_foreseen_in_the_words_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real value changes between the two calls.
    monkeypatch.setattr(memory, "available_bytes", lambda: 20 << 30)
    planned = cells("900t")
    _, refused = feasibility.foresee(planned, tmp_path)
    (told,) = refused
    with pytest.raises(FslabError) as stopped:
        feasibility.check("c", planned, frozenset())
    assert told.splitlines()[0] == str(stopped.value).splitlines()[0]


def test_where_nothing_is_possible_a_run_is_refused(tmp_path: Path) -> None:
    only = tuple(cell for cell in cells("64m") if cell.stack.filesystem == "f2fs")
    _, refused = feasibility.foresee(only, tmp_path)
    assert ["Linux has no f2fs" in text for text in refused] == [True]


def test_a_cause_is_told_once_however_many_stacks_it_concerns(tmp_path: Path) -> None:
    mounted = "{medium: m, filesystem: f2fs, mount_options: [noatime, nodiratime, lazytime]}"
    text = STUDY.replace("{medium: m, filesystem: [ext4, f2fs]}", mounted).replace("SIZE", "64m")
    planned = expand(load_text(text, "s.yaml"))
    found, refused = feasibility.foresee(planned, tmp_path)
    (reason,) = set(found.values())
    first, second, _ = (f"{cell.stack.name} on host" for cell in planned)
    assert refused == (f"{first}, {second} and 1 more: {reason}",)


def test_root_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "missing_for_mounts", lambda: "root")
    _, refused = feasibility.foresee(cells("64m"), tmp_path)
    assert "this study needs root: run it with sudo" in refused
