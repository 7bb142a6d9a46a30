"""Tests of ``fslab features`` and of the matrix of ``fslab doctor``, as root and as another user."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab, end
from tests.e2e.test_other_user import as_nobody, home
from tests.limits import wait_for

from fslab.cell import MachineSpec
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.system import mountinfo, paths
from fslab.system.mountinfo import Mount

__all__ = ["home"]


def guest_missing() -> bool:
    return bool(MACHINES.get("uml").missing(MachineSpec(type="uml")))


@pytest.mark.root
def test_the_table_and_what_is_documented(fslab: Fslab) -> None:
    shown = fslab("features", "ext4", "btrfs", "--on", "host", "--only", "reflink,checksums,dax").stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["ext4", "btrfs"] in lines
    assert ["reflink", "no", "yes"] in lines
    assert ["flipped", "data", "detected", "no", "yes"] in lines
    assert "ext4, btrfs DAX: the device is not persistent memory" in shown
    assert "What the documentation says" in shown


@pytest.mark.root
def test_features_speak_json(fslab: Fslab) -> None:
    said = fslab.json(
        "features", "ext4", "zfs", "--on", "host", "--size", "64m", "--only", "hard-links", "--json"
    )
    ext4, zfs = said["examinations"]
    assert ext4["findings"]["hard-links"]["value"] == 65000
    assert (ext4["machine"], ext4["not_possible"], zfs["findings"]) == ("host", None, {})
    assert "OpenZFS" in zfs["not_possible"]
    assert said["documented"]["filesystems"]["ext4"]["reflink"]["source"]


@pytest.mark.root
def test_nothing_possible_is_an_exit_code(fslab: Fslab) -> None:
    assert "OpenZFS" in fslab("features", "zfs", code=4).stdout


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["extt4"], "ext4"), (["ext4", "--only", "reflnk"], "reflink"), (["ext4", "--medium", "device"], "loop or ram"),
        (["xfs", "--size", "64m"], "xfs needs"), (["ext4", "--size", "many"], "--size"),
        (["ext4", "--on", "umll"], "uml"),
    ],
)  # fmt: skip
def test_mistakes(argv: list[str], says: str, fslab: Fslab) -> None:
    assert says in fslab("features", *argv, code=2).stderr


def test_the_matrix_has_every_pair_and_says_what_is_missing(fslab: Fslab) -> None:
    document = fslab.json("doctor", "--json")
    capabilities, matrix = document["capabilities"], document["matrix"]
    assert {"root", "loop", "ext4", "fio", "engine"} <= {entry["name"] for entry in capabilities}
    pairs = {(entry["name"], entry["machine"]) for entry in matrix}
    names = [*(name for name, driver in FILESYSTEMS if driver.mounted), *LAYOUTS.names()]
    assert pairs == {(name, machine) for name in names for machine in MACHINES.names()}
    for entry in matrix:
        assert bool(entry["needs"]) is (entry["lack"] != "runs"), entry
    shown = fslab("doctor").stdout
    assert "on host" in shown
    assert "reiser4 (never in Linux itself" in shown


POSSIBLE_AND_NOT = """
title: one that is possible and two that are not
media: {fast: {type: ram, size: 96m}}
stacks: {all: {medium: fast, filesystem: [ext4, zfs, reiser4]}}
workloads: {files: {tool: engine, operation: small-files, files: 50}}
trials: 1
cache: warm
"""


@pytest.mark.slow
def test_one_that_is_not_possible_keeps_no_other_from_being_measured(fslab: Fslab, tmp_path: Path) -> None:
    if guest_missing():
        pytest.skip("no guest to run in")
    (tmp_path / "study.yaml").write_text(POSSIBLE_AND_NOT)
    planned = fslab.json("plan", "study.yaml", "--on", "uml", "--json")
    zfs, reiser4 = planned["impossible"].values()
    assert "OpenZFS" in zfs
    assert "never in Linux itself" in reiser4
    fslab("run", "study.yaml", "--on", "uml", "-q")
    status = {each["stack"]["name"]: (each["status"], each["error"]) for each in fslab.trials()}
    assert status["ext4"][0] in {"ok", "invalid"}
    assert status["zfs"][0] == status["reiser4"][0] == "unsupported"
    assert "never in Linux itself" in status["reiser4"][1]


@pytest.mark.slow
def test_quotas_in_a_file_are_found_and_those_of_the_file_system_too(fslab: Fslab) -> None:
    if guest_missing():
        pytest.skip("no guest to try in")
    names = ("ext3", "ext4", "jfs", "reiserfs", "xfs")
    found = fslab.json("features", *names, "--on", "uml", "--only", "quotas", "--json")["examinations"]
    said = {each["filesystem"]: each["findings"]["quotas"] for each in found if each["findings"]}
    in_file = ("yes", "by user, in a file (quotacheck)", "mount -o usrquota")
    known = {"ext4": ("yes", "by user", "mkfs -O quota"), "xfs": ("yes", "by user", "mount -o uquota")}
    for name, quotas in said.items():
        assert (quotas["answer"], quotas["detail"], quotas["switch"]) == known.get(name, in_file), name


@pytest.mark.root
def test_what_a_killed_one_left_is_undone(fslab: Fslab) -> None:
    process = fslab.start("features", "xfs", "--on", "host")
    wait_for(
        lambda: any(
            mount.filesystem == "xfs" and mount.target.is_relative_to(paths.runtime())
            for mount in of_this_test()
        )
    )
    end(process, signal.SIGKILL)
    left = of_this_test()
    assert left
    fslab("clean")
    assert not {mount.target for mount in left} & {mount.target for mount in mountinfo.mounted()}
    assert not list((paths.state() / "journal").glob("*.jsonl"))


def of_this_test() -> list[Mount]:
    """Return the mounts of the campaigns whose journals are in this test's directories."""
    names = [path.stem for path in (paths.state() / "journal").glob("*.jsonl")]
    return [mount for mount in mountinfo.mounted() if any(name in mount.target.parts for name in names)]


@pytest.mark.root
@pytest.mark.slow
def test_somebody_else_sees_what_needs_root_and_tries_in_a_guest(home: Path) -> None:
    matrix = json.loads(as_nobody(home, "doctor", "--json").stdout)["matrix"]
    lacks = {(entry["name"], entry["machine"]): entry["lack"] for entry in matrix}
    assert lacks["ext4", "host"] == "root"
    if guest_missing():
        pytest.skip("no guest to try in")
    assert lacks["ext4", "uml"] == "runs"
    done = as_nobody(home, "features", "ext4", "--only", "holes,timestamps", "--json")
    assert done.returncode == 0, done.stderr
    (ext4,) = json.loads(done.stdout)["examinations"]
    assert ext4["machine"] == "uml"
    assert ext4["findings"]["holes"]["answer"] == "yes"
