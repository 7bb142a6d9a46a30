"""Tests of the members of a fleet and of what studies may do on them: agents, worker.toml, schedules."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fslab
from fslab import cli, feasibility
from fslab.cli import fleet, fleet_run
from fslab.errors import BusyError, UnsafeError, UnsupportedError, UsageError
from fslab.fleet import agent, execution, starting, worker_settings
from fslab.fleet.worker_settings import Allowed, WorkerSettings
from fslab.plan.expand import expand
from fslab.store.fleet_values import Assignment, MemberMachine
from fslab.study import shipped
from fslab.study.load import load, load_text
from fslab.system import paths

STUDY = """
title: a study
media: {disk: {type: ram, size: 64m}}
stacks: {ext4: {medium: disk, filesystem: ext4}}
workloads: {work: {tool: fio, rw: randread, size: 8m, runtime: 1s}}
"""


def test_two_agents_of_one_machine_are_two() -> None:
    """The store refuses the second one of a name. With one id, both were online, and each replaced the other."""
    one, other, again = (
        agent.this_machine(WorkerSettings(name="lab1"), f"/data/{each}.sqlite").id for each in "aba"
    )
    assert one != other
    assert one == again, "the same after a restart"


@pytest.mark.parametrize("shared", ["runtime", "data"])
def test_two_agents_do_not_share_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str
) -> None:
    """Of two fleets, with one name: each removed the other's directories, and ended its measuring processes."""
    monkeypatch.setattr(agent.Agent, "_run", lambda _: None)
    monkeypatch.setenv("FSLAB_RUNTIME_DIR", str(tmp_path / "runtime"))
    made = agent.Agent(
        settings=WorkerSettings(name="lab1"),
        store="",
        tell=print,
        own=str(tmp_path / "data" / "fleet.sqlite"),
    )
    made.run()
    with (
        agent.only_one(paths.fleet() if shared == "runtime" else tmp_path / "data"),
        pytest.raises(BusyError, match="another agent uses this directory"),
    ):
        made.run()


def test_a_host_name_that_is_no_name_of_a_machine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "(none)")  # a machine that nobody has named
    path = tmp_path / "worker.toml"
    with pytest.raises(UsageError, match=r"name: .*'\(none\)' is not a valid name: use 1 to 128 of A-Z"):
        WorkerSettings.load(path, needed=False)
    path.write_text('name = "lab1"')
    assert WorkerSettings.load(path, needed=False).name == "lab1"


def test_settings_that_others_can_change_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "worker.toml"
    path.write_text('name = "lab1"\n[allow]\ndevices = ["/dev/disk/by-id/x"]\n')
    path.chmod(0o644)
    assert WorkerSettings.load(path, needed=True).allow.devices == ("/dev/disk/by-id/x",)
    path.chmod(0o666)
    with pytest.raises(UnsafeError, match="other users can change"):
        WorkerSettings.load(path, needed=True)
    if os.geteuid() == 0:
        path.chmod(0o644)
        for changed in (path, tmp_path):
            os.chown(changed, 65534, 0)
            with pytest.raises(UnsafeError, match="other users can change"):
                WorkerSettings.load(path, needed=True)
            os.chown(changed, 0, 0)


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://m:s3cret@db/f", "postgresql+psycopg://m@db/f?password=s3cret"]
)
def test_a_password_that_others_can_read_is_refused(tmp_path: Path, url: str) -> None:
    path = tmp_path / "worker.toml"
    path.write_text(f'store = "{url}"')
    path.chmod(0o640)
    with pytest.raises(UnsafeError, match="other users can read this file") as refused:
        WorkerSettings.load(path, needed=True)
    assert "s3cret" not in str(refused.value)
    path.chmod(0o600)
    assert WorkerSettings.load(path, needed=True).store == url
    path.write_text('store = "postgresql+psycopg://m@db/f"')
    path.chmod(0o644)
    assert WorkerSettings.load(path, needed=True).store is not None


def test_a_machine_without_the_url_of_a_database_does_not_use_its_own_store(tmp_path: Path) -> None:
    (tmp_path / "worker.toml").touch()
    done = CliRunner().invoke(cli.app, ["fleet", "worker", "--config", str(tmp_path / "worker.toml")])
    assert isinstance(done.exception, UsageError)
    assert "no URL of the fleet's database" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = [", "is not valid TOML"), ("\xff", "is not UTF-8 text\n.*save it as UTF-8"), ("name = '../x'", "name"),
        ("unknown = 1", "unknown: unknown key$"), ("stall = -1", "stall: must be more than 0"),
        ("[allow]\ndirectories = ['images']", "directories: 'images' is not an absolute path"),
        ("labels = ['a']", "labels: a list is not a mapping"),
        ("[allow]\ndevices = '/dev/x'", "allow.devices: '/dev/x' is not a list"),
    ],
)  # fmt: skip
def test_mistakes_in_settings_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "worker.toml"
    path.write_text(text, "latin-1")
    path.chmod(0o644)
    with pytest.raises(UsageError) as failed:
        WorkerSettings.load(path, needed=True)
    assert re.search(said, failed.value.without_place, re.MULTILINE)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["pipe", "directory"])
def test_settings_are_read_from_a_regular_file_only(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A pipe would block."""
    path = tmp_path / "worker.toml"
    make(path)
    with pytest.raises(UsageError, match="is not a regular file"):
        WorkerSettings.load(path, needed=True)


def test_settings_may_begin_with_the_mark_of_editors_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "worker.toml"
    path.write_bytes(b'\xef\xbb\xbfname = "lab1"\r\n')
    path.chmod(0o644)
    assert WorkerSettings.load(path, needed=True).name == "lab1"


def test_without_settings_only_memory_and_our_own_directory(tmp_path: Path) -> None:
    assert WorkerSettings.load(tmp_path / "none", needed=False).allow == Allowed()
    with pytest.raises(UsageError, match="does not exist"):
        WorkerSettings.load(tmp_path / "none", needed=True)
    for name in ("quick", "loop-vm", "crash-quick"):
        worker_settings.check(Allowed(), expand(load(name), feasibility.all_resolved))


RAM, EXT4, FIO = (
    "{type: ram, size: 64m}",
    ", filesystem: ext4",
    "{tool: fio, rw: randread, size: 8m, runtime: 1s}",
)
REFUSED: dict[str, tuple[dict[str, str], str, dict[str, Any]]] = {
    "directory": (
        {RAM: "{type: directory, path: /srv}", EXT4: ""},
        "medium 'directory'",
        {"directories": ["/srv"]},
    ),
    "image": ({RAM: "{type: loop, path: /srv/a}"}, "/srv/a", {"directories": ["/srv"]}),
    "device": (
        {RAM: "{type: device, path: /dev/disk/by-id/a}"},
        "medium 'device'",
        {"devices": ["/dev/disk/by-id/a"]},
    ),
    "guest": ({"title:": "on: uml\ntitle:"}, "virtual machines", {"guests": True}),
    "tuning": (
        {"title:": "tuning: {cpu_governor: performance}\ntitle:"},
        "settings of the kernel",
        {"tuning": True},
    ),
    "command": ({FIO: "{tool: command, run: touch a, space: 1m}"}, "the command", {"commands": True}),
}


def changed(replaced: dict[str, str]) -> Any:
    """Return the cells of STUDY with parts of its text replaced."""
    text = STUDY
    for old, new in replaced.items():
        text = text.replace(old, new)
    return expand(load_text(text, "study.yaml"), feasibility.all_resolved)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_study_may_not_do_unless_the_machine_allows_it(name: str) -> None:
    replaced, said, allowed = REFUSED[name]
    cells = changed(replaced)
    with pytest.raises(UnsafeError, match="does not allow the study") as caught:
        worker_settings.check(Allowed(), cells)
    assert said in caught.value.what
    assert all(f"({key}" in caught.value.what for key in allowed)  # what the administrator has to set
    worker_settings.check(Allowed(**allowed), cells)


@pytest.mark.parametrize("path", ["boot", "home", "srv", "a b", ".", "..", "~", "/boot"])
def test_an_image_lies_nowhere_else_whatever_its_path_looks_like(path: str) -> None:
    """Without allowed directories, every image is refused, also with a relative path: the agent's directory is /."""
    with pytest.raises(UnsafeError, match="directories"):
        worker_settings.check(Allowed(), changed({RAM: f"{{type: loop, path: '{path}', size: 64m}}"}))


def test_kernels_need_no_commands_and_commands_no_directories() -> None:
    guests = changed({"title:": "on: uml\nkernel: /boot/vmlinux-next\ntitle:"})
    worker_settings.check(Allowed(guests=True, kernels=("/boot/vmlinux-next",)), guests)
    with pytest.raises(UnsafeError, match=r"to boot /boot/vmlinux-next .kernels."):
        worker_settings.check(Allowed(guests=True), guests)
    worker_settings.check(
        Allowed(commands=True), changed({FIO: "{tool: command, run: /usr/bin/true, space: 1m}"})
    )


def test_a_device_is_allowed_by_its_name_and_a_directory_with_all_below() -> None:
    other = changed({RAM: "{type: device, path: /dev/disk/by-id/b}"})
    with pytest.raises(UnsafeError, match="to overwrite /dev/disk/by-id/b"):
        worker_settings.check(Allowed(devices=("/dev/disk/by-id/a",)), other)
    for path in ("/srvx", "/srv/../etc", "~/x", "."):
        outside = changed({RAM: f"{{type: directory, path: {path}}}", EXT4: ""})
        with pytest.raises(UnsafeError):
            worker_settings.check(Allowed(directories=("/srv",)), outside)


@pytest.mark.parametrize("options", ["-J device=/dev/sda1", "-d /etc"])
def test_paths_in_options_are_refused(options: str) -> None:
    study = load_text(STUDY, "study.yaml")
    (cell,) = expand(study, feasibility.all_resolved)
    stack = cell.stack.model_copy(update={"mkfs_options": options})
    with pytest.raises(UnsafeError, match="a path in options"):
        worker_settings.check(Allowed(), [cell.model_copy(update={"stack": stack})])


def machine(name: str, **values: Any) -> MemberMachine:
    known = {"version": fslab.__version__, **values}
    return MemberMachine(name=name, id=name, **known)


def test_machines_are_chosen_by_name_and_label() -> None:
    there = [
        machine("a", labels={"rack": "1"}),
        machine("b", labels={"rack": "2"}),
        machine("c", unseen_s=1000.0),
        machine("d", version="0.0"),
    ]
    ready, left_out = starting.chosen(there, [])
    assert [each.name for each in ready] == ["a", "b"]
    assert left_out == {
        "c": "not seen for 90 s",
        "d": f"runs fslab 0.0, and this is {fslab.__version__}",
    }
    assert [each.name for each in starting.chosen(there, ["rack=2"])[0]] == ["b"]
    with pytest.raises(UnsupportedError, match="none has rack=1 and rack=2"):
        starting.chosen(there, ["rack=1", "rack=2"])
    with pytest.raises(UsageError, match="no such machine: z"):
        starting.chosen(there, ["z"])
    with pytest.raises(UnsupportedError, match="b: has other labels"):
        starting.chosen(there, ["b", "rack=1"])
    with pytest.raises(UnsupportedError, match="no machine has joined the fleet"):
        starting.chosen([], [])
    with pytest.raises(UnsupportedError, match="no machine can run it"):
        starting.chosen(there, ["c"])


def test_brackets_in_facts_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    fleet_run._show_machines([machine("a", facts={"kernel": "6.1 [rt]"})])
    assert " 6.1 [rt] " in capsys.readouterr().out


def test_names_leave_room_for_each_other() -> None:
    value = starting.assigned(load("quick"), "quick.yaml", name="n" * 63)
    (made,) = starting.assignments(value, [machine("m" * 63)])
    assert Assignment.model_validate_json(made.model_dump_json()) == made
    with pytest.raises(UsageError, match="too long"):
        starting.assignments(value.model_copy(update={"name": "n" * 64}), [machine("m")])
    with pytest.raises(ValueError):
        WorkerSettings(name="m" * 64)


@pytest.mark.parametrize("name", shipped.ids())
def test_each_gives_all_to_all_and_spread_divides_what_is_not_compared(name: str) -> None:
    study = load(name)
    value = starting.assigned(study, f"{name}.yaml", name="nightly")
    machines = [machine("a"), machine("b"), machine("c")]
    assert [each.study.workloads for each in starting.assignments(value, machines)] == [(), (), ()]
    shares = [each.study.workloads for each in starting.assignments(value, machines, spread=True)]
    whole = [cell.workload.name for cell in expand(study, feasibility.all_resolved)]
    assert sorted(part for share in shares for part in share) == sorted(set(whole))


@pytest.mark.parametrize(
    ("at", "now", "first"),
    [
        ("02:00", "2026-11-23T01:59:59", "2026-11-23T02:00:00"),
        ("02:00", "2026-11-23T02:00:00", "2026-11-24T02:00:00"),
        ("00:00", "2026-12-31T12:00:00", "2027-01-01T00:00:00"),
    ],
)
def test_the_first_run_of_a_schedule(at: str, now: str, first: str) -> None:
    given = datetime.fromisoformat(f"{now}+00:00")
    assert fleet._next(at, given) == datetime.fromisoformat(f"{first}+00:00")


@pytest.mark.parametrize("at", ["2 o'clock", "25:00", "02:00+02:00"])
def test_invalid_times_of_day(at: str) -> None:
    with pytest.raises(UsageError, match="not a time of day"):
        fleet._next(at, datetime.now(UTC))


@pytest.mark.parametrize(("text", "seconds"), [("24h", 86400), ("7d", 604800), ("90s", 90)])
def test_from_one_run_to_the_next(text: str, seconds: int) -> None:
    assert fleet._every(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "-1d", "30s", "x"])
def test_invalid_times_between_runs(text: str) -> None:
    with pytest.raises(UsageError, match="--every"):
        fleet._every(text)


def test_what_a_program_left_in_its_directory_is_removed_and_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is untrusted. Links that it left in its directory are removed, but not their targets."""
    monkeypatch.setenv("FSLAB_RUNTIME_DIR", str(tmp_path / "run"))
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "kept").write_text("kept")
    directory = execution.place("measuring-lab1")
    for name in ("log", "request.json"):
        (directory / name).symlink_to(ours / "kept")
    (directory / "deep").mkdir()
    (directory / "deep" / "all").symlink_to(ours)
    again = execution.place("measuring-lab1")
    assert again != directory
    assert list(again.iterdir()) == []
    assert (ours / "kept").read_text() == "kept"
    assert again.stat().st_mode & 0o777 == 0o700
