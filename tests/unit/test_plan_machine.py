"""Tests of plans for a machine that a file describes, and of the claims that they exclude."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from benches.tested_claims import EIGHT, TWO, text
from typer.testing import CliRunner

from fslab import feasibility
from fslab.api import claims, plans
from fslab.campaign import launch
from fslab.claims.testable import Foreseen, Prospect, words
from fslab.cli import app
from fslab.errors import UsageError
from fslab.machine import facts
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.store.store import Store
from fslab.study.load import load, load_text
from fslab.system import cpu_speed, distributions, kernel, memory, tools

PAGE = Path(__file__).parents[2] / "docs/studies.md"
STUDY = """\
title: t
media: {m: {type: ram, size: 2g}}
stacks: {fs: {medium: m, filesystem: [ext4, btrfs, f2fs]}}
workloads:
  w: {tool: engine, operation: search, classes: "small:1000:32k", threads: [1, 2, 4]}
  f: {tool: fio, rw: read, bs: 1m, size: 64m}
claims:
  - {says: one thread, on: w, that: "ext4[threads=1] > btrfs[threads=1]"}
  - {says: all, on: w, that: ext4 > btrfs}
  - {says: four, on: w, that: "ext4[threads=4] > btrfs[threads=4]"}
  - {says: needs it, on: f, that: f2fs > ext4}
  - {says: large, on: f, that: ext4 > btrfs, requires: larger-than-memory}
  - {says: waits, on: f, that: ext4 > btrfs, requires: wait >= 0.5}
"""


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any reading of this machine fails."""

    def read(*_: Any, **__: Any) -> Any:
        raise AssertionError("this machine was read")

    monkeypatch.setattr(os, "geteuid", lambda: 12345)  # shown in bonnie++'s command
    for place in (
        (os, "statvfs"), (os, "cpu_count"), (os, "sysconf"), (os, "sched_getaffinity"), (tools, "find"),
        (facts, "gather"), (kernel, "known_filesystems"), (memory, "meminfo"), (distributions, "here"),
        (cpu_speed, "reference_spread"),
    ):  # fmt: skip
        monkeypatch.setattr(*place, read)
    for _, machine in MACHINES:
        for method in ("missing", "kernel", "cpus", "emulated", "check_room"):
            monkeypatch.setattr(type(machine), method, read)


@pytest.mark.usefixtures("elsewhere")
def test_the_page_has_the_claims_of_all_studies_on_both_machines() -> None:
    assert text() in PAGE.read_text("utf-8")


def changed(directory: Path, **kinds: dict[str, Any]) -> Path:
    """Return a file with the description of the larger machine, with these changes of its kinds."""
    machine = json.loads(EIGHT.read_text("utf-8"))
    for name, changes in kinds.items():
        machine["kinds"][name] |= changes
    path = directory / "machine.json"
    path.write_text(json.dumps(machine), "utf-8")
    return path


def prospects(machine: Path, *settings: str) -> tuple[Foreseen, ...]:
    study = load_text(STUDY, "s.yaml", settings)
    with plans.on_machine(machine):
        return plans.claims_foreseen(study, plans.plan(study))


def test_what_a_machine_excludes_and_why(tmp_path: Path) -> None:
    """Threads by CPUs, a kernel without the file system, files by memory; what only a run shows excludes nothing."""
    sizes = Prospect.NOT, ("files of 64 MiB fit in memory (32 GiB)",)
    whole = changed(tmp_path, host={"filesystems": ["ext4", "btrfs"]})
    first = STUDY.replace("that: ext4 > btrfs}", "that: ext4 is first}")
    with plans.on_machine(whole):
        study = load_text(first, "s.yaml")
        in_part = words(plans.claims_foreseen(study, plans.plan(study)))
    assert in_part.startswith("4 of 6 can be tested (1 only in part)"), in_part
    found = {one.says: (one.prospect, one.why) for one in prospects(EIGHT)}
    assert {says: of for says, of in found.items() if of != (Prospect.TESTABLE, ())} == {"large": sizes}

    small = changed(tmp_path, host={"cpus": 2, "filesystems": ["ext4", "btrfs"]})
    found = {one.says: (one.prospect, one.why) for one in prospects(small)}
    assert found == {
        "one thread": (Prospect.TESTABLE, ()),
        "all": (Prospect.ONLY_FAIL, ("4 threads share 2 CPUs",)),
        "four": (Prospect.NOT, ("4 threads share 2 CPUs",)),
        "needs it": (Prospect.NOT, ("Linux 6.12.48+deb13-amd64 has no f2fs",)),
        "large": sizes,
        "waits": (Prospect.TESTABLE, ()),
    }
    assert words(prospects(small)) == (
        "2 of 6 can be tested; 1 cannot be replicated (1: 4 threads share 2 CPUs); 3 cannot be tested (1: 4 "
        "threads share 2 CPUs; 1: Linux 6.12.48+deb13-amd64 has no f2fs; 1: files of 64 MiB fit in memory (32 GiB))"
    )


def test_the_plan_counts_only_cells_that_have_trials(tmp_path: Path) -> None:
    """Four cells need f2fs, and two only a claim about four threads on two CPUs."""
    small = changed(tmp_path, host={"cpus": 2, "filesystems": ["ext4", "btrfs"]})
    path = tmp_path / "s.yaml"
    path.write_text(STUDY, "utf-8")
    with plans.on_machine(small):
        some, all_ = plans.plan(load(path)), plans.plan(load(path, ["trials=5"]))
    assert [len(each.measured) for each in (some, all_)] == [6, 8]
    assert {each.cell for each in some.order} == {cell.id for cell in some.measured}
    assert some.expected_s < all_.expected_s
    command = ["plan", str(path), "--machine", str(small)]
    shown = CliRunner().invoke(app, command).stdout
    assert "\n6 of 12 cells × 5 to 40 trials = 30 to 240 trials, until" in shown
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert len(told["left_out"]) == 2


def test_a_run_says_what_it_cannot_test_before_it_begins(tmp_path: Path) -> None:
    said: list[str] = []
    study = load_text(f"{STUDY}budget: 1h\n", "s.yaml")
    with plans.on_machine(changed(tmp_path, host={"cpus": 2})):
        launch.of_study(study, "s.yaml", tell=said.append)
    assert [line.partition(" (")[0] for line in said] == [
        "claims: 3 of 6 can be tested; 1 cannot be replicated",
        "no trials of 2 of 12 cells: only claims, or parts of claims, that cannot be tested here need them",
        "no claim is about 3 of 10 cells: they are measured last, as far as the budget reaches",
    ]
    said.clear()
    testable = load_text(STUDY[: STUDY.index("  - {says: large")] + "budget: 1h\n", "s.yaml")
    with plans.on_machine(EIGHT):
        launch.of_study(testable, "s.yaml", tell=said.append)
    assert said == ["no claim is about 4 of 12 cells: they are measured last, as far as the budget reaches"]


READS_BACK = """\
title: t
on: best
media: {m: {type: ram, size: 2g}}
stacks: {fs: {medium: m, filesystem: [ext4, xfs]}}
workloads: {b: {tool: bonnie, size: 256m, seeks: 0}}
claims:
  - {says: waits, on: b, metric: read_bandwidth, that: ext4 > xfs, requires: wait}
  - {says: from the disk, on: b, metric: read_bandwidth, that: ext4 > xfs, requires: from-disk}
  - {says: writes, on: b, metric: write_bandwidth, that: ext4 > xfs, requires: wait}
  - {says: large, on: b, metric: write_bandwidth, that: ext4 > xfs, requires: larger-than-memory}
"""


def test_what_is_read_back_from_memory_is_foreseen_unless_memory_is_limited(tmp_path: Path) -> None:
    """Memory is limited on the host where it can be; only a study that names the host is refused elsewhere."""
    never = tmp_path / "never.json"
    never.write_text(json.dumps(json.loads(EIGHT.read_text("utf-8")) | {"limits_memory": False}), "utf-8")
    cached = (Prospect.NOT, ("files of 256 MiB are read back from memory (32 GiB)",))
    whole = {
        "waits": cached, "from the disk": cached, "writes": (Prospect.TESTABLE, ()),
        "large": (Prospect.NOT, ("files of 256 MiB fit in memory (32 GiB)",)),
    }  # fmt: skip
    for machine, settings, found in (
        (EIGHT, [], whole),
        (EIGHT, ["guest_memory=128m"], dict.fromkeys(whole, (Prospect.TESTABLE, ()))),
        (never, ["guest_memory=128m"], whole),
    ):
        study = load_text(READS_BACK, "s.yaml", settings)
        with plans.on_machine(machine):
            made = plans.plan(study)
            seen = plans.claims_foreseen(study, made)
        assert [each.type for each in made.machines] == ["host"]
        assert {one.says: (one.prospect, one.why) for one in seen} == found
    named = load_text(READS_BACK, "s.yaml", ["on=host", "guest_memory=128m", "slices=auto"])
    with plans.on_machine(EIGHT):
        made = plans.plan(named)
    assert "memory of 'ext4' is limited" in next(iter(made.whole.values()))
    assert made.notices == ("the memory of the tool and of its page cache is limited to 128m (guest_memory)",)
    with plans.on_machine(never):
        assert "the memory of a tool cannot be limited here" in plans.plan(named).refused[0]


def test_emulated_cpus_make_it_depend_on_the_disks(tmp_path: Path) -> None:
    for kind, changes, prospect in (
        ("uml", {}, Prospect.IF_WAITED),
        ("qemu", {}, Prospect.TESTABLE),
        ("qemu", {"emulated": True}, Prospect.IF_WAITED),
    ):
        machine = changed(tmp_path, **{kind: changes})
        assert prospects(machine, f"on={kind}", "guest_memory=512m")[0].prospect is prospect, (kind, changes)


def test_best_is_the_best_of_the_machine_that_is_described(tmp_path: Path) -> None:
    """On the host: with md and LVM where its kernel has them, else with stripes of the disk server, which are no claims
    of md against LVM. Without root in a guest."""
    study = load("multi-disk")
    by_server = "the disk server stripes: md and LVM themselves are not part of it, and not tested"
    guest = tmp_path / "guest.json"
    guest.write_text(json.dumps(json.loads(TWO.read_text("utf-8")) | {"root": False}), "utf-8")
    for machine, kind, said, served, testable in (
        (TWO, "host", "2 CPUs, 24 GiB", True, 18),
        (EIGHT, "host", "8 CPUs, 32 GiB", False, 26),
        (guest, "uml", "2 CPUs, 24 GiB", False, 0),
    ):
        with plans.on_machine(machine) as where:
            assert said in str(where)
            made = plans.plan(study)
            found = plans.claims_foreseen(study, made)
        assert [each.type for each in made.machines] == [kind]
        assert {cell.stack.served for cell in made.cells if cell.stack.layout != "single"} == {served}
        assert not any(cell.stack.served for cell in made.cells if cell.stack.layout == "single")
        assert any(by_server in line for line in made.notices) is served
        assert sum(one.prospect is Prospect.TESTABLE for one in found) == testable
        against = {one.claim: one.why for one in found if one.prospect is Prospect.NOT}
        why = "the disk server stripes, md and LVM themselves are not part of it"
        claims_of_stripes = ["7a", "7b", "7c", "7d", "7e", "7f", "7g", "8"] if served else []
        assert against == dict.fromkeys(claims_of_stripes, (why,))
        commands = {command.argv[0] for each in made.commands.values() for command in each}
        assert bool(commands & {"mdadm", "env"}) is not served


def test_room_and_root_are_those_of_the_machine_that_is_described(tmp_path: Path) -> None:
    machine = json.loads(EIGHT.read_text("utf-8")) | {
        "root": False, "memory_bytes": 1 << 30, "programs_missing": ["mkfs.f2fs"],
    }  # fmt: skip
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(machine), "utf-8")
    with plans.on_machine(path):
        refused = plans.plan(load_text(STUDY, "s.yaml")).refused
    assert len(refused) == 3
    for text_, said in zip(
        refused, ("not installed: mkfs.f2fs", "described machine has 768 MiB", "needs root"), strict=True
    ):
        assert said in text_


def test_this_machine_by_its_own_description(tmp_path: Path) -> None:
    path = tmp_path / "doctor.json"
    path.write_text(json.dumps({"description": feasibility.describe().model_dump(mode="json")}), "utf-8")
    study = load_text(STUDY, "s.yaml", ["on=best"])
    here = plans.plan(study)
    with plans.on_machine(path):
        there = plans.plan(study)
    assert (there.machines, there.impossible.keys()) == (here.machines, here.impossible.keys())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cpus": 8}, "cpus: is not a fact"),
        ({"memory_bytes": "32g"}, "memory_bytes: Input should be a valid integer"),
        ({"programs_missing": ["mkfs.ext5"]}, "programs_missing: no 'mkfs.ext5'"),
        ({"kinds": {}}, "'kinds' has no 'host'"),
        ({"kinds": {"host": {"kernel": "6.12"}}}, "kinds.host: has neither 'kernel' and 'cpus'"),
        (
            {"kinds": {"host": {"kernel": "6.12", "cpus": 2, "filesystems": ["ext5"]}}},
            "host.filesystems: no 'ext5'",
        ),
        ({"kinds": {"host": {"kernel": "6.12", "cpus": 2}, "kvm": {"missing": ["x"]}}}, "kinds: no 'kvm'"),
    ],
)
def test_what_is_wrong_with_a_description(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(json.loads(EIGHT.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(UsageError) as caught, plans.on_machine(path):
        pass
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "fslab doctor --json" in str(caught.value)


@pytest.mark.usefixtures("elsewhere")
def test_the_command(tmp_path: Path) -> None:
    study = tmp_path / "s.yaml"
    study.write_text(STUDY, "utf-8")
    said = CliRunner().invoke(app, ["plan", str(study), "--machine", str(EIGHT)]).stdout
    assert said.startswith(f"for the machine that {EIGHT} describes: 8 CPUs, 32 GiB, Linux 6.12.48")
    counted = "claims: 5 of 6 can be tested; 1 cannot be tested (1: files of 64 MiB fit in memory (32 GiB))"
    assert f"\n{counted}\n" in said
    told = json.loads(CliRunner().invoke(app, ["plan", str(study), "--machine", str(EIGHT), "--json"]).stdout)
    assert [one["prospect"] for one in told["claims_foreseen"]].count("testable") == 5


@pytest.mark.usefixtures("elsewhere")
def test_the_options_of_a_run_are_those_of_its_plan(tmp_path: Path) -> None:
    study = tmp_path / "s.yaml"
    study.write_text(STUDY, "utf-8")
    there = ["--machine", str(EIGHT)]
    asked = ["plan", str(study), "--trials", "7", "--budget", "1s", *there]
    said = CliRunner().invoke(app, asked).stdout
    assert " × 7 trials = " in said
    assert "the budget of 1 s may end it" in said
    assert f"\nexact commands of each cell: fslab {' '.join(asked)} --commands\n" in said
    open_end = (
        CliRunner().invoke(app, ["plan", str(study), "--until-decided", "--budget", "20d", *there]).stdout
    )
    assert "until each claim is decided" in open_end
    assert f" --until-decided --budget 20d {' '.join(there)} --commands\n" in open_end


def test_a_kernel_file_is_not_on_the_other_machine() -> None:
    with plans.on_machine(EIGHT), pytest.raises(UsageError, match="file of this machine"):
        plans.plan(load_text(STUDY, "s.yaml", ["on=uml", "kernel=/boot/vmlinuz"]))


def test_the_verdicts_have_the_reason_for_which_cells_were_not_measured(tmp_path: Path) -> None:
    """Cells of other claims are only not measured yet, and one that was tried has its own reason."""
    url = str(tmp_path / "store.sqlite")
    with plans.on_machine(changed(tmp_path, host={"cpus": 2, "filesystems": ["ext4", "btrfs"]})):
        campaign = launch.of_study(load_text(f"{STUDY}budget: 1h\n", "s.yaml"), "s.yaml")
        campaign = campaign.model_copy(update={"machine": {**campaign.machine, "cpus": 2}})
        with Store.open(url) as store:
            store.create_campaign(campaign)
        found = {claim.says: claim.measured for claim in claims.verdicts(campaign.id, url).claims}
        said = {says: answer.words for says, answer in found.items() if answer}
    assert said["four"] == "not measured here: 4 threads share 2 CPUs"
    assert said["one thread"] == "not measured here: w[threads=1] on ext4 is not measured"
    assert said["needs it"] == "not measured here: f on f2fs is not measured"
