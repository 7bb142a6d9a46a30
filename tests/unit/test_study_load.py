"""Tests of loading valid studies: every key is read, overrides apply, and the stored text gives the same study."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fslab.cell import Cache, Fresh
from fslab.errors import StudyError, UsageError
from fslab.plan.expand import expand
from fslab.stopping_settings import StoppingRule, Until
from fslab.study import shipped
from fslab.study.load import load, load_text
from fslab.study.model import StudyLayout, StudyMedium, StudyWorkload
from fslab.system.files import closed_after

TEXT = """\
title: all keys
source: nobody, nowhere
description: >-
  two
  lines
media:
  fast: {type: ram, size: 1g}
stacks:
  fs:
    medium: fast
    layout: single
    filesystem: [ext4, btrfs]
    mkfs_options: ""
    mount_options: [defaults, "noatime,nodiratime"]
    workloads: [randwrite, sync]
  plain: {medium: {type: ram}, filesystem: xfs, workloads: [randread]}
workloads:
  randwrite: &w {tool: fio, rw: randwrite, bs: [4k, 64k], iodepth: 32, direct: 1, size: 256m, runtime: 5s}
  randread: {extends: randwrite, rw: randread, cache: warm, fresh: cell, time_limit: 90s}
  sync:
    <<: *w
    direct: 0
    iodepth: 1
    fsync: 1
trials: 7
precision: 5%
until: precise
max_trials: 30
cache: cold
fresh: trial
seed: 42
budget: 1h30m
time_limit: 5m
tuning: {vm.dirty_bytes: 67108864, cpu_governor: performance}
"""


def test_every_key_is_in_the_model() -> None:
    study = load_text(TEXT, "dir/all-keys.yaml")
    assert (study.id, study.title, study.source, study.description) == (
        "all-keys", "all keys", "nobody, nowhere", "two lines",
    )  # fmt: skip
    assert study.stopping == StoppingRule(trials=7, precision=0.05, until=Until.PRECISE, max_trials=30)
    assert study.media["fast"] == StudyMedium(type="ram", options={"size": ("1g",)})
    stack = study.stacks["fs"]
    assert (stack.medium, stack.layout, stack.filesystem) == (
        ("fast",),
        (StudyLayout(type="single"),),
        ("ext4", "btrfs"),
    )
    assert (stack.mkfs_options, stack.mount_options) == (("",), ("defaults", "noatime,nodiratime"))
    assert stack.workloads == ("randwrite", "sync")
    assert (study.trials, study.cache, study.fresh, study.seed) == (7, Cache.COLD, Fresh.TRIAL, 42)
    assert (study.budget_s, study.time_limit_s) == (5400.0, 300.0)
    assert study.tuning == {"vm.dirty_bytes": "67108864", "cpu_governor": "performance"}


def test_a_workload_takes_over_what_it_extends() -> None:
    workloads = load_text(TEXT, "s.yaml").workloads
    assert workloads["randread"] == StudyWorkload(
        tool="fio", extends="randwrite", cache=Cache.WARM, fresh=Fresh.CELL, time_limit_s=90.0,
        parameters={
            "rw": ("randread",), "bs": ("4k", "64k"), "iodepth": (32,), "direct": (1,), "size": ("256m",),
            "runtime": ("5s",),
        },
    )  # fmt: skip
    assert workloads["sync"].parameters["fsync"] == (1,)
    assert workloads["sync"].parameters["direct"] == (0,)
    assert workloads["randwrite"].parameters["direct"] == (1,)


def test_extends_reaches_over_several_workloads() -> None:
    text = TEXT.replace("  sync:\n", "  rr1: {extends: randread, bs: 1m}\n  sync:\n")
    rr1 = load_text(text, "s.yaml").workloads["rr1"]
    assert (rr1.parameters["rw"], rr1.parameters["bs"], rr1.cache) == (("randread",), ("1m",), Cache.WARM)


def test_what_is_not_written_has_its_default() -> None:
    study = load_text("title: t\nstacks: {d: {medium: {type: directory, path: .}}}\n"
                      "workloads: {w: {tool: fio, rw: read, size: 1m}}\n", "s.yaml")  # fmt: skip
    assert (study.trials, study.cache, study.fresh, study.seed) == (5, Cache.COLD, Fresh.TRIAL, 1)
    assert (study.budget_s, study.time_limit_s, study.tuning, study.source) == (None, 600.0, {}, None)
    (cell,) = expand(study)
    assert (cell.stack.filesystem, cell.stack.layout, cell.stack.mount_options) == (
        None,
        "single",
        "defaults",
    )


def test_the_stored_text_and_overrides_make_the_same_study_again() -> None:
    study = load_text(TEXT, "all-keys.yaml", ["trials=3", "workloads.randwrite.bs=[16k]"])
    again = load_text(study.text, study.id, study.overrides)
    assert again == study
    assert [cell.id for cell in expand(again)] == [cell.id for cell in expand(study)]


@pytest.mark.parametrize("study_id", shipped.ids())
def test_shipped_studies_load_and_make_themselves_again(study_id: str) -> None:
    study = load(study_id)
    assert study.id == study_id
    assert study.title == shipped.title(study_id)
    assert bool(study.claims) == (study_id in shipped.with_claims())
    assert load_text(study.text, study.id) == study


@pytest.mark.parametrize("key", ["workloads", " workloads "])
def test_claims_about_what_an_override_took_away_are_no_mistakes(key: str) -> None:
    study = load("ext-generations", [f"{key}={{r: {{tool: fio, rw: read, size: 4m}}}}"])
    assert list(study.workloads) == ["r"]


def test_overrides_apply_in_order_and_reach_everything() -> None:
    study = load_text(
        TEXT, "s.yaml",
        ["trials=3", "trials=4", "media.fast.size=2g", "workloads.randwrite.runtime=1s", "tuning.vm.swappiness=1",
         "stacks.fs.filesystem=[xfs]", "budget=10m", "workloads.new={extends: randread, bs: 8k}"],
    )  # fmt: skip
    assert study.trials == 4
    assert study.media["fast"].options == {"size": ("2g",)}
    assert study.workloads["randwrite"].parameters["runtime"] == ("1s",)
    assert study.workloads["randread"].parameters["runtime"] == ("1s",)
    assert study.tuning["vm.swappiness"] == "1"
    assert study.stacks["fs"].filesystem == ("xfs",)
    assert study.budget_s == 600.0
    assert study.workloads["new"].parameters["bs"] == ("8k",)


def test_an_override_of_an_anchored_value_changes_one_place() -> None:
    study = load_text(TEXT, "s.yaml", ["workloads.randwrite.size=32m"])
    assert study.workloads["randwrite"].parameters["size"] == ("32m",)
    assert study.workloads["sync"].parameters["size"] == ("256m",)


def test_a_study_is_found_by_path_and_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT)
    assert load(path).id == load(str(path)).id == "mine"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quick").write_text(TEXT)
    assert load("quick").title != "all keys"
    assert load(Path("quick")).title == load("./quick").title == "all keys"
    (tmp_path / "own-name").write_text(TEXT)
    assert load("own-name").id == "own-name"
    (tmp_path / "sweep-1.5").write_text(TEXT)
    assert load("sweep-1.5").id == load_text(TEXT, "sweep-1.5.yaml").id == "sweep-1.5"


def test_a_study_that_is_not_text_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "image.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match=r"image\.yaml: is not UTF-8"):
        load(tmp_path / "image.yaml")


def test_an_address_is_no_file() -> None:
    with pytest.raises(
        UsageError, match=r"^https://x\.example/s\.yaml: is an address, and fslab downloads nothing"
    ):
        load("https://x.example/s.yaml")


@pytest.mark.parametrize(
    "make", [lambda path: path.symlink_to("/dev/null"), os.mkfifo], ids=["device", "pipe"]
)
def test_a_study_is_a_regular_file_or_an_open_descriptor(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    """fslab waited without end for somebody who writes to the pipe."""
    path = tmp_path / "mine.yaml"
    make(path)
    with pytest.raises(UsageError, match=r"mine\.yaml: cannot be read: is not a regular file"):
        load(path)
    reading, writing = os.pipe()
    with closed_after(reading):
        with os.fdopen(writing, "w") as file:
            file.write(TEXT)
        assert load(f"/dev/fd/{reading}").title == "all keys"


def test_stacks_run_only_the_workloads_they_name() -> None:
    pairs = {
        (cell.stack.name.split()[0], cell.workload.name.partition("[")[0])
        for cell in expand(load_text(TEXT, "s"))
    }
    assert pairs == {
        ("ext4", "randwrite"), ("btrfs", "randwrite"), ("ext4", "sync"), ("btrfs", "sync"), ("plain", "randread"),
    }  # fmt: skip


def test_a_workload_overrides_the_state_it_is_measured_in() -> None:
    cells = {cell.workload.name: cell for cell in expand(load_text(TEXT, "s"))}
    warm, cold = cells["randread[bs=4k]"], cells["randwrite[bs=4k]"]
    assert (warm.cache, warm.fresh, warm.time_limit_s) == (Cache.WARM, Fresh.CELL, 90.0)
    assert (cold.cache, cold.fresh, cold.time_limit_s) == (Cache.COLD, Fresh.TRIAL, 300.0)
    assert warm.tuning == cold.tuning == {"vm.dirty_bytes": "67108864", "cpu_governor": "performance"}


@pytest.mark.parametrize(
    ("overrides", "limit_s"),
    [
        ((), 140.0),
        (("trials=3",), 140.0),
        (("precision=5%",), None),
        (("precision=5%", "until=precise"), None),
        (("precision=5%", "budget=10m"), 600.0),
    ],
)
def test_a_given_precision_lifts_the_budget_of_the_study(
    overrides: tuple[str, ...], limit_s: float | None
) -> None:
    text = TEXT.replace("budget: 1h30m", "budget: 140s").replace("precision: 5%\nuntil: precise\n", "")
    assert load_text(text, "all-keys.yaml", overrides).limit_s == limit_s


def test_a_name_longer_than_any_file_has_is_not_a_study() -> None:
    with pytest.raises(UsageError, match="no study '999"):
        load("9" * 400)


def test_an_override_that_is_not_text_is_a_mistake() -> None:
    with pytest.raises(StudyError, match="not UTF-8"):
        load("quick", ['guest_memory="\\udcff"'])


def test_a_study_is_put_on_a_directory_s_disk() -> None:
    """Of the media that fslab makes, the sizes stay; what only guests have goes, unless it is asked for as well."""
    study = load("multi-disk", ['on_path="/srv"', "media.disk.size=32g", "media.disk.room=3g"])
    assert study.media["disk"].type == "loop"
    assert study.media["disk"].options["path"] == ("/srv",)
    assert study.media["disk"].options["room"] == ("3g",)
    assert study.media["disk"].options["size"] == ("32g",)
    assert {stack.machine.type for cell in expand(study) for stack in [cell.stack]} == {"host"}
    again = load_text(study.text, "multi-disk.yaml", study.overrides)
    assert again.media == study.media
    host = load("multi-disk", ['on_path="/srv"', "on=host"])
    assert {(stack.on, stack.guest_memory) for stack in host.stacks.values()} == {(("host",), None)}
    guest = load("multi-disk", ['on_path="/srv"', "on=uml"])
    assert {cell.stack.machine.type for cell in expand(guest)} == {"uml"}
    with pytest.raises(StudyError, match="no medium that it would replace"):
        load("here", ['on_path="/srv"'])


@pytest.mark.parametrize(
    ("medium", "size", "room"),
    [
        ("{type: virtual, profile: none}", "1t", str(33 << 30)),
        ("{type: virtual, profile: none, size: 64g, memory: 64g}", "64g", str(64 << 30)),
        ("{type: ram}", "1g", None),
        ("{type: ram, room: 300m}", "1g", "300m"),
        ("{type: loop}", "2g", None),
    ],
)
def test_an_image_on_a_directory_s_disk_has_the_size_of_the_medium_that_it_replaces(
    medium: str, size: str, room: str | None
) -> None:
    text = f"title: t\nmedia: {{m: {medium}}}\nstacks: {{s: {{medium: m, filesystem: ext4}}}}\n"
    text += "workloads: {w: {tool: dd, op: write, count: 1}}\n"
    written_in_a_stack = text.replace("medium: m", f"medium: [m, {medium}]")
    for study in (text, written_in_a_stack):
        found = [cell.stack.medium for cell in expand(load_text(study, "s.yaml", ['on_path="/srv"']))]
        assert {each.type for each in found} == {"loop"}
        assert {(each.options["size"], each.options.get("room")) for each in found} == {(size, room)}


def test_on_a_directory_s_disk_no_power_is_cut() -> None:
    study = load("sqlite", ['on_path="/srv"'])
    assert study.media["disk"].options["room"] == (str(1 << 30),), (
        "512 MiB, and as much for zeros that mkfs writes"
    )
    gone = load("sqlite").workloads.keys() - study.workloads.keys()
    assert gone == {"power-cuts-wal", "power-cuts-wal-normal"}
    assert "Left out, because they need a virtual disk: power-cuts-wal" in (study.description or "")
    with pytest.raises(StudyError, match="every workload of the study needs a virtual disk"):
        load("crash-quick", ['on_path="/srv"'])


def test_on_a_directory_s_disk_a_stack_of_which_only_the_power_is_cut_is_left_out() -> None:
    text = """
        title: t
        media: {m: {type: virtual, profile: none}}
        workloads: {w: {tool: dd, op: write, count: 1}, c: {tool: crash}}
        stacks:
          all: {medium: m, filesystem: btrfs}
          s: {medium: m, filesystem: ext4, workloads: [c]}
          t: {medium: m, filesystem: xfs, workloads: [c, w]}
        """
    assert load_text(text, "s.yaml").stacks.keys() == {"all", "s", "t"}
    study = load_text(text, "s.yaml", ['on_path="/srv"'])
    assert {name: stack.workloads for name, stack in study.stacks.items()} == {"all": None, "t": ("w",)}
    left_out = "Left out, because they need a virtual disk: c, the stack s."
    assert study.description == left_out
    described = load_text(text, "s.yaml", ['on_path="/srv"', "description=Two stacks."])
    assert described.description == f"Two stacks. {left_out}"


def test_on_a_directory_s_disk_a_workload_keeps_what_it_has_from_one_that_is_left_out() -> None:
    text = """
        title: t
        media: {m: {type: virtual, profile: none}}
        workloads:
          b: {tool: crash, fresh: block}
          c: {extends: b, cache: warm}
          w: {extends: c, tool: dd, op: write, count: 1}
          v: {extends: w, cache: cold}
        stacks: {s: {medium: m, filesystem: ext4}}
        """
    study = load_text(text, "s.yaml", ['on_path="/srv"'])
    assert {name: (each.cache, each.fresh) for name, each in study.workloads.items()} == {
        "w": (Cache.WARM, Fresh.BLOCK),
        "v": (Cache.COLD, Fresh.BLOCK),
    }


def test_an_override_of_the_study_s_tuning_leaves_that_of_a_stack() -> None:
    text = """
        title: t
        media: {m: {type: ram}}
        workloads: {w: {tool: dd, op: write, count: 1}}
        stacks: {s: {medium: m, filesystem: ext4, tuning: {vm.swappiness: 20}}}
        """
    (cell,) = expand(load_text(text, "s.yaml", ["tuning={vm.dirty_ratio: 30}"]))
    assert cell.tuned == {"vm.dirty_ratio": "30", "vm.swappiness": "20"}
