"""Tests of fslab as another user than root: it measures what is possible, and says what needs root."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.e2e.conftest import FSLAB
from tests.limits import RUN_LIMIT_S

from fslab.cell import MachineSpec
from fslab.machine.kinds import REGISTRY

pytestmark = pytest.mark.root

NOBODY = 65534
# Unmounts tracefs and debugfs: with may_read, nobody could read them on those machines that have them mounted. Unmounts
# loop devices: other tests could not release a device that this namespace still has mounted.
OWN_MOUNTS = r"""
umount -lq /sys/kernel/tracing; umount -lq /sys/kernel/debug
sed -n 's|^/dev/loop[0-9]* \(\S*\) .*|\1|p' /proc/mounts | while read -r target; do umount -lq "$target"; done
exec "$@"
"""


def as_nobody(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run fslab as ``nobody``, with ``home`` as its home directory and with permission to read all files.

    The permission is needed because this checkout may be in a directory that is closed to other users.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("needs setpriv")
    # Without no_setuid_fixup, access(2) ignores the capability. A guest's hostfs uses access(2).
    may_read = (
        "--securebits=+no_setuid_fixup",
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "FSLAB_"))}
    environment |= {"HOME": str(home), "FSLAB_RUNTIME_DIR": str(home.parent / "run")}
    as_other = (setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *may_read)
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", OWN_MOUNTS, "sh", *as_other, str(FSLAB), *argv],
        capture_output=True, text=True, check=False, cwd=home, timeout=RUN_LIMIT_S, env=environment,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    for made in (path, tmp_path / "run"):
        made.mkdir()
        os.chown(made, NOBODY, NOBODY)
    for parent in path.parents:
        mode = parent.stat().st_mode
        if parent.is_mount() or mode & stat.S_ISVTX:  # directories from here upwards are open to all users
            break
        parent.chmod(mode | 0o011)
    return path


def test_the_directory_is_measured(home: Path) -> None:
    timed = ("random-write", "random-read", "sequential-write", "synced-write")
    changes = ["trials=1", "cache=warm", *(f"workloads.{each}.runtime=1s" for each in timed)]
    done = as_nobody(home, "run", "here", *(word for each in changes for word in ("--set", each)))
    assert done.returncode == 0, done.stderr
    assert "random-write" in done.stdout
    assert "Without root" in done.stdout
    left = {path.name for path in home.iterdir()}
    assert left == {".local", ".cache"}, "only the store, and what the page's charts are drawn with"


DISKS = """
title: two hard disks
on: uml
guest_memory: 192m
media: {d: {type: virtual, profile: hdd-7200, size: 2g, memory: 256m, log: requests}}
stacks: {s: {medium: d, filesystem: ext4, layout: {type: md-raid0, disks: 2}}}
workloads: {w: {tool: fio, rw: randread, bs: 4k, size: 4m, runtime: 1s, direct: true}}
trials: 1
"""


@pytest.mark.slow
def test_modelled_hard_disks_are_anybody_s_in_a_guest(home: Path) -> None:
    if missing := REGISTRY.get("uml").missing(MachineSpec(type="uml")):
        pytest.skip(f"{missing[0].what}: {missing[0].remedy}")
    (home / "disks.yaml").write_text(DISKS)
    done = as_nobody(home, "run", "--quiet", "disks.yaml")
    assert done.returncode == 0, done.stderr
    (trial,) = json.loads(as_nobody(home, "export", "--format", "json").stdout)
    assert [each["profile"] for each in trial["provenance"]["device"]["virtual_disks"]] == ["hdd-7200"] * 2
    assert trial["probes"]["disk_requests"]["value"] > 0
    assert 0 <= trial["probes"]["disk_sequential"]["value"] < 50, "random reads"
    assert trial["probes"]["disk_gap_p50"]["value"] > 0
    assert as_nobody(home, "report", "--output", "page.html").returncode == 0
    assert "requests over time and place" in (home / "page.html").read_text()


@pytest.mark.slow
def test_why_is_told_by_what_there_is(home: Path) -> None:
    """Without root there are fewer statements.

    The certainty of those based on the whole disk or file system is "coincides", because other programs use it too.
    """
    study = (
        "title: here\nmedia: {here: {type: directory, path: .}}\nstacks: {here: {medium: here}}\ntrials: 1\n"
    )
    study += "workloads: {w: {tool: fio, rw: randwrite, bs: 4k, fsync: 1, size: 8m, io_size: 512k}}\n"
    (home / "here.yaml").write_text(study)
    assert as_nobody(home, "run", "--quiet", "here.yaml").returncode == 0
    said = json.loads(as_nobody(home, "explain", "--json").stdout)["statements"]
    assert not {each["mechanism"] for each in said} & {"metadata-traffic", "direct-not-honoured"}
    for each in said:
        of_all = any("of the whole " in figure["evidence"] for figure in each["figures"])
        assert each["certainty"] == ("coincides" if of_all else "observed"), each
    refused = as_nobody(home, "explain", "--trace")
    assert refused.returncode == 4
    assert "needs root" in refused.stderr


def test_doctor_names_the_evidence_that_another_user_lacks(home: Path) -> None:
    found = json.loads(as_nobody(home, "doctor", "--json").stdout)["capabilities"]
    evidence = {each["name"]: each for each in found if each["kind"] == "evidence"}
    for name in ("tracefs", "ebpf", "ring", "debugfs"):
        assert not evidence[name]["available"]
        assert "not permitted; unavailable without it: " in evidence[name]["missing"][0], evidence[name]
    assert evidence["iostats"]["available"] is not bool(evidence["iostats"]["missing"])


def test_what_needs_root_says_so_and_makes_nothing(home: Path) -> None:
    done = as_nobody(home, "run", "quick")
    assert done.returncode == 4
    assert "needs root" in done.stderr
    assert "fslab run here" in done.stderr
    assert not list(home.rglob("*.img"))
