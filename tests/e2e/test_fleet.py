"""Tests of a fleet: real processes in network namespaces, a real PostgreSQL server with TLS, and faults."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests import fleet_lab, postgresql
from tests.limits import LIMIT_S, RUN_LIMIT_S, wait_for
from tests.starter import Starter

from fslab.errors import StoreError
from fslab.fleet import execution
from fslab.store.store import Store
from fslab.system import cgroup
from fslab.trial_record import Status

pytestmark = [pytest.mark.root, pytest.mark.unaffected]

STUDY = """
title: A study for a fleet
media: {disk: {type: ram, size: 64m}}
stacks:
  ext4: {medium: disk, filesystem: ext4}
  ext2: {medium: disk, filesystem: ext2}
workloads:
  files: {tool: engine, operation: small-files, files: 200, size: 1k, operations: "create,delete"}
trials: 5
"""
CELLS = 2
TRIALS = 5  # of each


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def store_of(member: fleet_lab.Member) -> Path:
    """Return the path of the machine's own store."""
    return member.home / "data" / "fslab" / "fleet.sqlite"


def is_in(member: fleet_lab.Member, group: cgroup.ControlGroup | None) -> bool:
    """Return whether the machine's measuring process is in its control group; also if it can have none."""
    return group is None or not set(member.processes("fslab.fleet.measuring")).isdisjoint(group.processes())


def measured(member: fleet_lab.Member) -> int:
    """Return the number of trials in the machine's own store."""
    path = store_of(member)
    if not path.exists():
        return 0
    with Store.open(str(path)) as own:
        return sum(own.count(each.id) for each in own.campaigns())


def check_results(lab: fleet_lab.Lab, run: dict[str, object], trials: int) -> None:
    """Check that each machine's campaign is stored once, complete, and equal to the one in the machine's own store.

    It has more trials than planned only if some are invalid: another program dropped the caches.
    """
    machines = run["machines"]
    assert isinstance(machines, list)
    assert [each["status"] for each in machines] == ["finished"] * len(lab.members), machines
    url = f"postgresql+psycopg://fslab@/fleet?host={lab.cluster.directory}"
    with Store.open(url) as store:
        for member, told in zip(lab.members, machines, strict=True):
            with Store.open(str(store_of(member))) as own:
                here, there = (each.trials(told["campaign"], raw=True) for each in (own, store))
                assert here == there
                stored = {(each.cell.id, each.key.block) for each in there}
                assert len(stored) == len(there) == told["trials"]
                usable = sum(each.status is Status.OK for each in there)
                assert len(there) == trials or (trials < len(there) and usable < len(there))
                assert {each.key.campaign for each in there} == {told["campaign"]}


def test_a_fleet_survives_what_happens_to_it_and_refuses_strangers(two: fleet_lab.Lab, study: Path) -> None:
    survives_faults(two, study)
    refuses_strangers(two, study)


def survives_faults(two: fleet_lab.Lab, study: Path) -> None:
    """A run completes although processes are killed, the database is stopped and a machine is disconnected.

    Killed: the measuring process, an agent and the scheduler.
    """
    one, other = two.members
    trials = 5
    for member in two.members:
        member.pause()
    run = two.begin("run", study, "--fleet", "--trials", trials, "--json")
    for member in two.members:
        wait_for(partial(member.processes, "fslab.fleet.measuring"))
    groups = [execution.measuring_group(str(store_of(member))) for member in two.members]
    wait_for(lambda: all(map(is_in, two.members, groups)))
    assert one.kill("fslab.fleet.measuring")
    assert other.kill("fleet", "worker")
    assert other.agent is not None
    other.agent.wait(LIMIT_S)
    other.start()
    two.end_scheduler(signal.SIGKILL)
    two.cluster.stop()
    one.link("down")
    one.go_on()
    wait_for(lambda: measured(one) == CELLS * trials)  # measured without network and database
    one.link("up")
    two.cluster.start()
    two.start_scheduler()
    other.go_on()
    said, errors = run.communicate(timeout=RUN_LIMIT_S)
    assert run.returncode == 0, errors
    check_results(two, json.loads(said), CELLS * trials)
    assert not any(group is not None and group.path.exists() for group in groups)
    assert "measuring ended with -9, and starts again" in one.log
    shown = two.fslab("fleet", "results", "study").stdout
    assert "study on 2 machines: lab1, lab2" in shown


def refuses_strangers(two: fleet_lab.Lab, study: Path) -> None:
    """A server with another certificate than the one that the URL names is not used.

    A machine refuses a study that it does not allow, and the operator gets the reason. A cancelled run ends on its
    machine.
    """
    before = [measured(each) for each in two.members]
    stranger = two.url("fslab", postgresql.certificate(two.directory))
    done = two.fslab("fleet", "status", "--store", stranger, check=False)
    assert done.returncode == StoreError.exit_code
    assert "certificate verify failed" in done.stderr
    study.write_text(STUDY.replace("type: ram, size: 64m", "type: loop, size: 64m, path: /srv"))
    done = two.fslab("run", study, "--fleet", "--json", check=False)
    assert done.returncode == 6
    assert {each["status"] for each in json.loads(done.stdout)["machines"]} == {"refused"}
    assert "does not allow the study: /srv (directories)" in json.loads(done.stdout)["machines"][0]["message"]
    study.write_text(STUDY)
    made = two.json("run", study, "--fleet", "--detach", "--machines", "lab1", "--trials", "500")
    assert made["machines"] == ["lab1"]
    wait_for(lambda: measured(two.members[0]) > before[0])
    assert "1 machine cancelled" in two.fslab("fleet", "cancel", made["run"]).stdout
    wait_for(lambda: "cancelled or taken over" in two.members[0].log)
    assert measured(two.members[1]) == before[1]


def end_agent(lab: fleet_lab.Lab, member: fleet_lab.Member) -> None:
    if member.agent is not None:  # also one that is just starting, and not yet the agent by its command line
        member.agent.kill()
        member.agent.wait(LIMIT_S)
    member.start()


def end_scheduler(lab: fleet_lab.Lab, member: fleet_lab.Member) -> None:
    lab.end_scheduler(signal.SIGKILL)
    lab.start_scheduler()


def restart_database(lab: fleet_lab.Lab, member: fleet_lab.Member) -> None:
    lab.cluster.stop()
    time.sleep(0.5)
    lab.cluster.start()


def cut_cable(lab: fleet_lab.Lab, member: fleet_lab.Member) -> None:
    member.link("down")
    time.sleep(1)
    member.link("up")


def stop_agent(lab: fleet_lab.Lab, member: fleet_lab.Member) -> None:
    for process in member.processes("fleet", "worker"):
        os.kill(process, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(process, signal.SIGCONT)


# Each function causes a fault, and where necessary does what an administrator or systemd does afterwards.
FAULTS: tuple[Callable[[fleet_lab.Lab, fleet_lab.Member], object], ...] = (
    lambda _, member: member.kill("fslab.fleet.measuring"),
    end_agent,
    end_scheduler,
    restart_database,
    cut_cable,
    stop_agent,
)


@pytest.mark.slow
def test_a_hundred_random_faults(programs: Path, study: Path, tmp_path: Path, starter: Starter) -> None:
    """No trial is lost or stored twice, the run ends by itself, and nothing is left on the machines.

    A machine that is nearly done pauses until all faults have happened, however fast it is.
    """
    chosen, trials = random.Random(18), 250
    with fleet_lab.lab(programs, tmp_path, 4, starter) as lab:
        run = lab.begin("run", study, "--fleet", "--trials", trials, "--json")
        for _ in range(100):
            time.sleep(chosen.uniform(0.2, 1.5))
            assert run.poll() is None, "over before all faults had happened"
            chosen.choice(FAULTS)(lab, chosen.choice(lab.members))
            for member in lab.members:
                if member.turn is None and measured(member) > CELLS * trials // 2:
                    member.pause()
        for member in lab.members:
            member.go_on()
        said, errors = run.communicate(timeout=RUN_LIMIT_S)
        assert run.returncode == 0, errors
        check_results(lab, json.loads(said), CELLS * trials)
