"""Tests of the command line: help, plan, lists, a run on a directory, exports and mistakes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.e2e.conftest import FSLAB, Fslab
from tests.limits import LIMIT_S

from fslab.system.temporary import LOCK

FIVE_MISTAKES = """\
title: five mistakes
media:
  memory: {type: ram, size: 1x}
stacks:
  fs:
    medium: memry
    filesystem: [ext4, xsf]
    mount_options: [defaults]
workloads:
  write:
    tool: fio
    rw: randwrite
    iodpeth: 32
    size: 64m
trails: 5
"""


def test_five_mistakes_are_five_messages_with_lines(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(FIVE_MISTAKES)
    said = fslab("plan", "wrong.yaml", code=2).stderr
    for line, name in ((3, "1x"), (6, "memory"), (7, "xfs"), (13, "iodepth"), (15, "trials")):
        assert any(f"wrong.yaml:{line}:" in each and name in each for each in said.splitlines()), (line, said)


def test_every_verb_has_help(fslab: Fslab) -> None:
    for verb in ("doctor", "list", "plan", "run", "results", "export", "clean", "schema"):
        assert len(fslab(verb, "--help").stdout) > 200


def test_help_names_only_options_that_the_command_has(fslab: Fslab) -> None:
    shown = fslab("fleet", "schedule", "--help").stdout
    assert "--resume" not in shown
    assert "--fleet" not in shown
    assert "--precision" not in shown


@pytest.mark.parametrize(
    "study", ["quick", *(pytest.param(each, marks=pytest.mark.slow) for each in ("here", "loop-vm"))]
)
def test_plan_touches_nothing(study: str, fslab: Fslab, tmp_path: Path, own_directories: Path) -> None:
    """It asks fio whether it refuses a job, in an empty directory for temporary files, which is gone then."""
    (temporary := tmp_path / "temporary").mkdir()
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    log = tmp_path / "strace.log"
    calls = (
        "execve fork vfork clone clone3 mount umount2 unlink unlinkat rename renameat2 mkdir mkdirat rmdir openat "
        "ioctl"
    )
    subprocess.run(
        [strace, "-f", "-o", str(log), "-e", f"trace={calls.replace(' ', ',')}", str(FSLAB), "plan", study],
        check=True, capture_output=True, cwd=tmp_path, timeout=LIMIT_S,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(temporary)},
    )  # fmt: skip
    lines = [line.split(None, 1)[1] for line in log.read_text().splitlines()]
    done = [line for line in lines if "= -1" not in line and not line.startswith(("---", "+++"))]
    started = [line for line in done if line.startswith("execve(")]
    assert [line for line in started if "--merge-blktrace-only" not in line] == started[:1], (
        "started a process"
    )
    for line in done:
        name = line.split("(")[0]
        if f'"{temporary}/' in line or f'"{LOCK}"' in line or name.startswith("<..."):
            continue
        assert name in {"execve", "openat", "ioctl", "clone", "clone3", "vfork"}, line
        if name == "openat":
            harmless = ('"/dev/null"', '"/proc/self/oom_score_adj"')
            assert not any(flag in line for flag in ("O_WRONLY", "O_RDWR", "O_CREAT")) or any(
                each in line for each in harmless
            ), line
            # The last is a setting of the machine, which claims ask for.
            known = ('"/dev/null"', '"/dev/urandom"', '"/dev/cpu_dma_latency", O_RDONLY')
            assert '"/dev/' not in line or any(each in line for each in known), line
    assert not [line for line in done if line.startswith("clone") and "CLONE_THREAD" not in line], "forked"
    assert not [*own_directories.rglob("*"), *temporary.iterdir()], "left a file"


def test_plan_prints_exact_commands(fslab: Fslab) -> None:
    said = fslab("plan", "quick", "--commands").stdout
    for words in (
        "mkfs.xfs -f -q -K /dev/loopN",
        "mount -t btrfs -o",
        "--rw=randwrite",
        "90 trials",
        "in memory",
    ):
        assert words in said
    made = fslab.json("plan", "quick", "--json")
    assert len(made["cells"]) == 18
    assert len(made["order"]) == 90


def test_an_unknown_study_suggests(fslab: Fslab) -> None:
    assert "quick" in fslab("run", "quik", code=2).stderr


def test_wiping_a_device_that_the_study_does_not_use_is_refused(fslab: Fslab) -> None:
    assert "--wipe" in fslab("run", "here", "--wipe", "/dev/disk/by-id/other", code=2).stderr


def test_lists_and_schema_speak_json(fslab: Fslab) -> None:
    listed = fslab.json("list", "--json")
    assert {"ext2", "ext3", "ext4", "xfs", "btrfs"} <= {entry["name"] for entry in listed["filesystems"]}
    assert {"fio", "dd", "sysbench", "engine"} <= {entry["name"] for entry in listed["workloads"]}
    (sqlite,) = [entry for entry in listed["applications"] if entry["name"] == "sqlite"]
    assert sqlite["settings"]["synchronous"][0] == "full", "the default is first"
    assert "default: full" in fslab("list", "applications").stdout
    assert fslab.json("schema")["type"] == "object"


HERE = """
title: a directory
media: {here: {type: directory, path: data}}
stacks: {here: {medium: here}}
workloads:
  write: {tool: fio, rw: randwrite, bs: 4k, direct: true, size: 4m}
  files: {tool: engine, operation: small-files, files: 200, size: 4k, operations: "create,delete"}
trials: 2
cache: warm
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    path = tmp_path / "here.yaml"
    path.write_text(HERE)
    return path


def test_the_directory_medium_needs_no_root(fslab: Fslab, here: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    done = fslab("run", here, "--precision", "5%", "--max-trials", "3")
    assert "store.sqlite" in done.stdout
    # There is only one stack, so that more trials do not help.
    assert "nothing to compare: fewer than two stacks" in done.stderr
    assert not list((tmp_path / "data").iterdir())
    assert (tmp_path / "precious").read_text() == "data"
    trials = fslab.trials()
    assert trials
    assert {trial["status"].split(":")[0] for trial in trials} <= {"ok", "invalid"}
    assert all(trial["stack"]["filesystem"] for trial in trials)


def test_the_plan_says_how_often_at_least_and_at_most(fslab: Fslab) -> None:
    settings = ("precision=5%", "trials=4", "max_trials=9", "budget=1s")
    told = fslab("plan", "here", *(word for each in settings for word in ("--set", each)))
    assert "× 4 to 9 trials = " in told.stdout
    assert "differ by less than 5 %" in told.stdout
    assert "the budget of 1 s may end it after about " in told.stdout


def test_exports_agree(measured: Fslab) -> None:
    import polars as pl

    figures = sum(len(trial["metrics"]) + len(trial["probes"]) for trial in measured.trials())
    measured("export", "--output", "out.csv")  # the file name gives the format
    measured("export", "--format", "parquet", "--output", "out.parquet")
    assert pl.read_csv(measured.cwd / "out.csv").height == figures
    assert pl.read_parquet(measured.cwd / "out.parquet").height == figures
    assert json.loads(measured("export", "--output", "-").stdout)
    for nowhere in ((), ("--output", "-")):
        assert "--output" in measured("export", "--format", "parquet", *nowhere, code=2).stderr


def test_a_json_run_prints_one_document(fslab: Fslab, here: Path) -> None:
    done = fslab("run", here, "--set", "trials=1", "--json")
    assert json.loads(done.stdout)["counts"]["stored"] > 0
    assert done.stderr == ""


def test_reading_makes_no_store(fslab: Fslab, tmp_path: Path) -> None:
    missing = tmp_path / "not" / "there.sqlite"
    for argv in (("results",), ("results", "--list"), ("export",), ("run", "--resume")):
        assert "the store does not exist" in fslab(*argv, "--store", missing, code=7).stderr
    assert not missing.parent.exists()
    hint = fslab("results", code=7).stderr
    assert "results of" in hint
    assert "--store FILE for both" in hint


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("run", "here", "--budget", "0"), "must be greater than zero"),
        (("run", "here", "--budget", "soon"), "not a duration"),
        (("run", "--resume", "--set", "trials=3"), "cannot be changed"),
        (("run", "--resume", "--scale", "0", "--on", "uml"), "--on, --scale: a resumed campaign"),
        (("run", "--resume", "--note", "x"), "--note: cannot be combined with --resume"),
        (("run", "here", "--spread"), "--spread: needs --fleet"),
        (("run", "here", "--fleet", "--resume"), "--resume: cannot be combined with --fleet"),
        (("run", "here", "--fleet", "--resume"), "resumes its campaign itself"),
        (("explain", "last", "files", "--ablate", "--trials", "0"), "'--trials'"),
        (("explain", "--only", "journal", "--trials", "3"), "--only, --trials: needs --ablate"),
        (
            ("features", "f2fs", "--on", "uml", "--guest-memory", "lots"),
            "--guest-memory: 'lots' is not a size",
        ),
        (
            ("features", "f2fs", "--on", "uml", "--guest-memory", "512"),
            "too little for a guest: write it with a unit",
        ),
        (("fleet", "scheduler", "--store", "x", "--give-up-after", "y"), "--give-up-after: 'y'"),
        (("run",), f"such as: fslab run {'here' if os.geteuid() else 'quick'};"),
        (("run", "--fleet"), "such as: fslab run --fleet quick;"),
        (("fleet", "schedule"), "such as: fslab fleet schedule quick;"),
    ],
)
def test_options_that_would_be_ignored_are_refused(fslab: Fslab, argv: tuple[str, ...], says: str) -> None:
    assert says in fslab(*argv, code=2).stderr


def test_when_no_trial_comes_off_the_exit_code_says_so(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "fails.yaml").write_text(
        "title: fails\nmedia: {here: {type: directory, path: .}}\nstacks: {here: {medium: here}}\n"
        'workloads: {w: {tool: command, run: "false"}}\ntrials: 1\ncache: warm\n'
    )
    done = fslab("run", "fails.yaml", "--allow-commands", code=6)
    assert "failed" in done.stdout
    assert "is finished" in fslab("run", "--resume", "fails.yaml", code=7).stderr
    refused = fslab("run", "--resume", "last", code=7).stderr
    assert "no campaign is unfinished" in refused
    assert "fslab run quick" in refused


def test_plan_answers_first_and_says_what_run_refuses(fslab: Fslab) -> None:
    larger = ("--set", "media.memory.size=300000g", "--set", "media.memory.room=200000g")
    said = fslab("plan", "quick", *larger).stdout
    assert len(said.splitlines()) <= 12
    assert "90 trials" in said
    assert "cannot run here" in said
    assert "of memory, but only" in said
    assert "mkfs" not in said


def test_the_command_that_a_plan_advises_shows_its_commands(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "own studies").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/j.fio").write_text("[a]\nrw=write\nsize=1m\n")
    (tmp_path / "own studies/s.yaml").write_text(
        "title: t\nmedia: {here: {type: directory, path: .}}\nstacks: {here: {medium: here}}\n"
        "workloads: {w: {tool: fio, file: ../jobs/j.fio}}\n"
    )
    options = ("--set", "trials=3", "--on", "host", "--scale", "0.5", "--allow-path", "jobs")
    said = fslab("plan", "own studies/s.yaml", *options).stdout
    (advised,) = re.findall("^exact commands of each cell: fslab (.*)$", said, re.MULTILINE)
    assert shlex.split(advised) == ["plan", "own studies/s.yaml", *options, "--commands"]
    shown = fslab(*shlex.split(advised)).stdout
    assert "3 trials" in shown
    assert "jobs.fio" in shown


def test_a_plan_says_which_cells_share_files(fslab: Fslab) -> None:
    shown = fslab("plan", "nas-file-management", "--on", "uml", "--set", "trials=3").stdout
    assert "files: shared by 84 cells (fresh: block): in each block, 12 of them make them" in shown
    made = json.loads(
        fslab("plan", "nas-file-management", "--on", "uml", "--set", "trials=3", "--json").stdout
    )
    assert len(made["shared"]) == len(made["cells"])
    assert len({each["group"] for each in made["shared"].values()}) == 12
    assert all(each["files"] for each in made["shared"].values())


def test_plan_tells_variants_apart(fslab: Fslab) -> None:
    said = fslab("plan", "quick", "--set", "workloads.random-write.bs=[4k,16k]", "--commands").stdout
    assert "random-write[bs=4k] on ext4" in said
    assert "random-write[bs=16k] on xfs" in said
