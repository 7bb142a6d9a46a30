"""Tests of commands, job files and mixed loads: small real runs on a RAM disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.limits import LIMIT_S

from fslab.cell import Cache
from fslab.errors import UnsafeError
from fslab.probes import foreign_cpu
from fslab.storage import Workspace
from fslab.system import mounts
from fslab.trial_record import Status, TrialRecord

JOBS = """\
[global]
size=4m
bs=64k
runtime=1
time_based
[reader]
rw=randread
[writer]
rw=randwrite
numjobs=2
"""
SCRIPT = (
    "set $dir=/tmp\ndefine fileset name=a,path=$dir,entries=20,size=3k,prealloc=100\n"
    "define process name=p { thread name=t { flowop statfile name=s,filesetname=a\n"
    "flowop finishoncount name=e,value=100 } }\nrun 60\n"
)


def run(
    workspace: Workspace, tool: str, parameters: dict[str, Any], limit_s: float = LIMIT_S,
    cache: Cache = Cache.WARM,
) -> TrialRecord:  # fmt: skip
    stack = made.spec("ext4", options={"size": "160m", "room": "160m"})
    return made.run(workspace, made.cell(stack, tool, parameters, time_limit_s=limit_s, cache=cache))


def test_a_command_runs_in_its_directory_and_is_flushed(workspace: Workspace) -> None:
    found = run(workspace, "command", {
        "prepare": "dd if=/dev/zero of=a bs=1M count=8 status=none\nmkdir sub",
        "run": "sh -c 'cp a sub/b; pwd; ls sub; echo moved 8'",
        "sync": True,
        "metrics.moved.pattern": "moved ([0-9]+)",
    })  # fmt: skip
    figures = made.figures(found)
    assert figures["moved"] == 8
    assert figures["time"] > 0
    assert found.raw["stdout"].splitlines()[0].endswith("/work")
    assert made.known(found.probes["device_written_bytes"].value) >= 8 << 20


def test_a_file_of_a_command_is_its_stored_text(workspace: Workspace) -> None:
    raw = {"run": "sh {file} {seed}", "file": "x.sh", "file_text": "echo figure $1\n"}
    found = run(workspace, "command", {**raw, "metrics.seed.pattern": "figure ([0-9]+)"})
    assert made.figures(found)["seed"] == 7


def test_a_server_that_refuses_root_runs_as_the_user_of_the_study(workspace: Workspace) -> None:
    """PostgreSQL's server: its data, its socket and its clients below directories that only root may enter."""
    script = (
        "ulimit -n; id -un; echo $HOME; "
        "pg_ctl -D $1/data -w -l $1/log -o \"-k $1 -c listen_addresses=''\" start >/dev/null && "
        "pgbench -h $1 -i -q postgres && pgbench -h $1 -T 1 postgres; pg_ctl -D $1/data stop"
    )
    found = run(workspace, "command", {
        "user": "postgres",
        "limits.nofile": 1000,
        "file": "s.sh",
        "file_text": script,
        "prepare": "initdb -D {directory}/data --no-sync",
        "run": "sh {file} {directory}",
        "metrics.tps.pattern": r"tps = ([0-9.]+) \(without",
    })  # fmt: skip
    assert found.error is None, found.raw
    assert made.figures(found)["tps"] > 0
    assert found.raw["stdout"].splitlines()[:3] == ["1000", "postgres", "/var/lib/postgresql"]


def test_a_daemon_of_the_workload_is_no_other_program(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works in no directory of the trial: only the mark in its environment tells whose it is."""
    monkeypatch.setattr(foreign_cpu, "_NAMED", 1000)  # not only those that used most
    burner = "printf burner >/proc/$$/comm; cd /; while :; do :; done"
    found = run(workspace, "command", {
        "prepare": f"sh -c \"setsid sh -c '{burner}' >/dev/null 2>&1 &\"",
        "run": "sleep 2",
    })  # fmt: skip
    assert found.error is None
    assert not [told for told in found.provenance.observed["foreign_cpu"] if told.startswith("burner")]


SERVER = {"file": "s.sh", "file_text": "setsid sleep 601 >log 2>&1 &\n", "prepare": "sh {file}"}


def test_a_server_that_prepare_starts_is_ended_after_the_measurement(workspace: Workspace) -> None:
    """It would hold the file system, and then run beside the next trial."""
    found = run(workspace, "command", {**SERVER, "run": "pgrep -x sleep"})
    assert found.error is None
    assert not workspace.left("prepare")


def test_a_server_that_holds_what_a_cold_cache_unmounts_is_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts.unmount, "__kwdefaults__", {"deadline_s": 0.2})
    found = run(workspace, "command", {**SERVER, "run": "true"}, cache=Cache.COLD)
    assert "for a cold cache: 'prepare' has started sleep (" in str(found.error)
    assert not workspace.left("prepare")


def test_what_a_part_of_a_mixed_load_leaves_is_found_too(workspace: Workspace) -> None:
    left = "setsid sh -c 'echo >up; exec sleep 603' >/dev/null 2>&1 &\nuntil [ -e up ]; do sleep 0.01; done\n"
    found = run(workspace, "mixed", {
        "parts.a.tool": "command", "parts.a.space": "1m", "parts.a.run": "sh {file}",
        "parts.a.file": "left.sh", "parts.a.file_text": left,
        "parts.b.tool": "command", "parts.b.space": "1m", "parts.b.run": "true",
    })  # fmt: skip
    assert "the command ended, but not what it had started: sleep (" in str(found.error)
    assert not workspace.left("run")


def test_a_command_that_ends_before_its_work_fails_and_names_what_still_runs(workspace: Workspace) -> None:
    found = run(workspace, "command", {"run": "sh -c 'sleep 602 >/dev/null 2>&1 & echo $!'"})
    told = f"the command ended, but not what it had started: sleep ({found.raw['stdout'].strip()})"
    assert told in str(found.error)
    assert not workspace.left("run")


def test_what_anybody_can_put_in_tmp_changes_no_report_of_fio(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fio writes its figures so far when it finds this file in TMPDIR, before the report, and removes the file."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (file := tmp_path / "fio-dump-status").touch()
    found = run(workspace, "fio", {"rw": "randread", "size": "4m", "bs": "64k", "runtime": "1s"})
    assert found.error is None
    assert file.exists()
    assert found.raw["fio.json"].count('"fio version"') == 1


def test_a_command_that_fails_fails_its_trial(workspace: Workspace) -> None:
    found = run(workspace, "command", {"run": "sh -c 'echo why >&2; exit 3'"})
    assert found.status is Status.FAILED
    assert "why" in str(found.error)
    found = run(workspace, "command", {"user": "nobody", "run": "sh -c 'echo why >&2; exit 3'"})
    assert "sh exited 3: why" in str(found.error)


def test_a_job_file_has_figures_of_each_job(workspace: Workspace) -> None:
    figures = made.figures(run(workspace, "fio", {"file": "jobs.fio", "file_text": JOBS}))
    assert figures["reader_read_iops"] > 0
    assert figures["writer_write_clat_p99"] > 0
    assert not [name for name in figures if name.startswith("total")], "no two jobs share a direction"


def test_a_job_file_that_fio_refuses_fails_before_the_run(workspace: Workspace) -> None:
    found = run(workspace, "fio", {"file": "x.fio", "file_text": "[a]\nsize=1m\nrw=write\nverify=banana\n"})
    assert found.status is Status.FAILED
    assert [command.stage for command in found.provenance.commands][-1] == "prepare"


def test_a_filebench_file_runs_from_its_stored_text(workspace: Workspace) -> None:
    found = run(workspace, "filebench", {"file": "gone.f", "file_text": SCRIPT, "space": "16m"})
    assert made.figures(found)["ops_rate"] > 0


def test_a_mixed_load_has_figures_of_each_part(workspace: Workspace) -> None:
    found = run(workspace, "mixed", {
        "runtime": "1s",
        "parts.reader.tool": "fio", "parts.reader.rw": "randread", "parts.reader.size": "8m",
        "parts.files.tool": "engine", "parts.files.files": 200, "parts.files.operations": "create,delete",
        "parts.job.tool": "fio", "parts.job.file": "j.fio",
        "parts.job.file_text": "[x]\nrw=write\nsize=4m\nruntime=1\ntime_based\n",
    })  # fmt: skip
    figures = made.figures(found)
    assert figures["reader_read_iops"] > 0
    assert figures["files_create_rate"] > 0
    assert figures["job_write_bandwidth"] > 0
    assert 0 < figures["overlap"] <= 100
    assert {"fio", "fslab-engine"} <= set(found.provenance.tools)


def test_a_part_that_fails_ends_the_others(workspace: Workspace) -> None:
    found = run(workspace, "mixed", {
        "parts.a.tool": "command", "parts.a.space": "1m", "parts.a.run": "sleep 50",
        "parts.b.tool": "command", "parts.b.space": "1m", "parts.b.run": "sh -c 'echo broken >&2; exit 4'",
    })  # fmt: skip
    assert found.status is Status.FAILED
    assert "part 'b' failed: broken" in str(found.error)
    assert found.duration_s < 40


def test_a_mixed_load_that_runs_too_long_leaves_no_process(workspace: Workspace) -> None:
    parts = {
        f"parts.{name}.{key}": value
        for name in "ab"
        for key, value in (("tool", "command"), ("run", "sleep 50"), ("space", "1m"))
    }
    found = run(workspace, "mixed", parts, limit_s=1)
    assert found.status_text == "failed:timed_out"  # the file system could be unmounted: no process uses it


def test_a_report_of_a_part_is_not_looked_for_through_a_link(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("secret")
    reports = workspace.runtime / "scratch" / "tool" / "a"
    found = run(workspace, "mixed", {
        "parts.a.tool": "command", "parts.a.space": "1m",
        "parts.a.run": f"sh -c 'rm -r {reports}; ln -s {tmp_path} {reports}'",
        "parts.b.tool": "command", "parts.b.space": "1m", "parts.b.run": "sleep 0.2",
    })  # fmt: skip
    assert found.status is Status.FAILED
    assert "a/stdout: the tool's report file cannot be read" in str(found.error)
    assert "secret" not in str(found.raw)


def test_a_stored_file_name_that_leads_elsewhere_is_refused(workspace: Workspace) -> None:
    for name in ("../../x", "/etc/x", "a/../../../x"):
        with pytest.raises(UnsafeError, match="outside its directory"):
            run(workspace, "command", {"run": "sh {file}", "file": name, "file_text": "true"})
