"""Tests of a fleet's store on a real PostgreSQL server: machines, assignments, leases, fencing, schedules, roles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text
from tests import postgresql
from tests.store.sql import sql
from tests.store.test_store import campaign, trial
from typer.testing import CliRunner

import fslab
from fslab import cli
from fslab.api.study_campaigns import outdated
from fslab.campaign.liveness import as_it_is
from fslab.errors import StoreError, UnsupportedError
from fslab.fleet import starting
from fslab.fleet.agent import Agent
from fslab.fleet.execution import Ending, Execution
from fslab.fleet.worker_settings import WorkerSettings
from fslab.serve import app
from fslab.store import fleet_sql, read_limits
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.fleet import FencedError, FleetStore
from fslab.store.fleet_values import (
    OPEN,
    AssignedStudy,
    Assignment,
    AssignmentStatus,
    FleetSchedule,
    MemberMachine,
)
from fslab.store.maintenance import grant
from fslab.store.schema import fleet_assignments
from fslab.store.store import Store
from fslab.store.transfer import copy_campaign

STUDY = AssignedStudy(file="study.yaml", text="title: a study", version="1")


def machine(name: str = "lab1", identity: str = "one") -> MemberMachine:
    return MemberMachine(name=name, id=identity, version="1", labels={"rack": "3"})


def assignment(name: str, on: str = "lab1") -> Assignment:
    return Assignment(id=name, run="run", machine=on, campaign=name, study=STUDY, created=datetime.now(UTC))


@contextmanager
def measured(directory: Path, made: Campaign) -> Iterator[Store]:
    """Yield the own store of a machine that measured a trial of a campaign."""
    with Store.open(str(directory / "own.sqlite")) as own:
        own.create_campaign(made)
        own.add_trial(trial(in_campaign=made.id))
        yield own


def taken(fleet: FleetStore, name: str, by: MemberMachine) -> Assignment:
    found = fleet.take(name, by)
    assert found is not None
    return found


def at_once(do: Callable[[int], object], count: int) -> None:
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(do, range(count)))


@pytest.fixture
def fleet(cluster: postgresql.Cluster, current: str) -> Iterator[FleetStore]:
    with Store.open(cluster.url_of(cluster.database(like=current))) as store:
        yield FleetStore(store)


def test_a_file_is_no_fleet(tmp_path: Path) -> None:
    with (
        Store.open(str(tmp_path / "a.sqlite")) as store,
        pytest.raises(StoreError, match="needs a PostgreSQL"),
    ):
        FleetStore(store)
    with pytest.raises(StoreError, match="needs a PostgreSQL"):
        starting.Scheduler(url=str(tmp_path / "a.sqlite"), give_up_s=1, tell=print).look()


def test_machines_are_there_until_they_leave(fleet: FleetStore) -> None:
    fleet.announce(machine())
    (found,) = fleet.machines()
    assert (found.is_online, found.labels) == (True, {"rack": "3"})
    assert not fleet.forget("lab1")  # it is online
    fleet.leave(machine())
    assert not fleet.machines()[0].is_online
    assert fleet.forget("lab1")
    assert fleet.machines() == []


def test_two_machines_cannot_have_one_name(fleet: FleetStore) -> None:
    fleet.announce(machine())
    with pytest.raises(StoreError, match="another machine of the fleet is named 'lab1'"):
        fleet.announce(machine(identity="two"))
    _execute(fleet.store, "UPDATE fleet_machines SET last_seen = now() - interval '2 minutes'")
    fleet.announce(machine(identity="two"))
    assert fleet.machines()[0].id == "two"


def test_a_row_that_fslab_did_not_write_hides_no_other(
    fleet: FleetStore, caplog: pytest.LogCaptureFixture
) -> None:
    """A machine can write rows about machines, and how assignments are."""
    fleet.announce(machine())
    fleet.announce(machine("lab2", "two"))
    fleet.announce(machine("lab3", "three"))
    fleet.assign([assignment("a"), assignment("b")])
    _execute(fleet.store, "UPDATE fleet_machines SET name = E'\\x1b[2J' WHERE name = 'lab2'")
    # Else what is told of versions would contain a line that looks as if it were fslab's.
    _execute(fleet.store, "UPDATE fleet_machines SET version = E'1\\n  → x' WHERE name = 'lab3'")
    _execute(fleet.store, "UPDATE fleet_assignments SET status = 'lost' WHERE id = 'b'")
    assert [each.name for each in fleet.machines()] == ["lab1"]
    assert [each.campaign for each in fleet.summaries(1)] == ["a"]
    assert "lab1" in app.fleet_page(fleet)
    assert "status" in caplog.text
    assert "not a valid name" in caplog.text
    assert "\x1b" not in caplog.text


# What a role that measures can write, and what the fleet's store does not check.
MADE_UP = {
    "endless": "UPDATE fleet_machines SET last_seen = 'infinity' WHERE name = 'lab2'",
    "later": "UPDATE fleet_machines SET last_seen = '200000-01-01' WHERE name = 'lab2'",
    "deep": "UPDATE fleet_machines SET facts = ('{\"a\": ' || repeat('[', 3000) || repeat(']', 3000) || '}')::json "
    "WHERE name = 'lab2'",
    "odd": "UPDATE fleet_machines SET facts = '{\"clock_ahead_s\": \"now\"}' WHERE name = 'lab2'",
    "digits": f"UPDATE fleet_machines SET facts = '{{\"cpus\": 1{'0' * 30}}}' WHERE name = 'lab2'",
    "infinite": "UPDATE fleet_machines SET facts = '{\"clock_ahead_s\": 1e999}' WHERE name = 'lab2'",
    "long": "UPDATE fleet_machines SET labels = ('{\"a\": \"' || repeat('x', 9000000) || '\"}')::json "
    "WHERE name = 'lab2'",
    "assignment": "UPDATE fleet_assignments SET ended = 'infinity', lease_until = '-infinity', epoch = 2147483647, "
    "message = repeat('x', 9000000) WHERE id = 'b'",
    "first day": "SET timezone = 'Asia/Tokyo'; UPDATE fleet_assignments SET ended = '0001-01-01 00:30+09' "
    "WHERE id = 'b'",
    "campaign's time": "UPDATE campaigns SET created = 'infinity' WHERE id = 'c2'",
    "campaign's size": f"UPDATE campaigns SET study_source = repeat('x', {read_limits.CAMPAIGN_LIMIT}) WHERE id = 'c2'",
}


@pytest.mark.parametrize("statement", MADE_UP.values(), ids=MADE_UP)
def test_what_one_machine_makes_up_stops_no_other(fleet: FleetStore, statement: str) -> None:
    for each in (machine(), machine("lab2", "two")):
        fleet.announce(each)
    fleet.assign([assignment("a"), assignment("b", on="lab2")])
    for name in ("c1", "c2"):
        fleet.store.create_campaign(campaign(name))
    _execute(fleet.store, statement)
    said: list[str] = []
    looking(fleet, said).look()
    assert said == []
    assert unfinished(fleet) == {"a": "lab1", "b": "lab2"}
    shown = CliRunner().invoke(cli.app, ["fleet", "status", "--store", fleet.store.path])
    assert shown.exit_code == 0, shown.exception
    assert "lab1" in shown.stdout
    assert "lab1" in app.fleet_page(fleet)
    assert "a" in [each.campaign for each in fleet.summaries(1)]
    is_of_campaign = "UPDATE campaigns" in statement
    assert [each.id for each in fleet.store.campaigns()] == (["c1"] if is_of_campaign else ["c1", "c2"])
    assert all(len(str(each)) < 200_000 for each in (*fleet.machines(), *listed(fleet)))
    gone = "UPDATE fleet_machines SET last_seen = now() - interval '2 h' WHERE name = 'lab2' AND isfinite(last_seen)"
    _execute(fleet.store, gone)
    assert len(fleet_sql.give_up(fleet, 3600)) == 1
    assert unfinished(fleet) == {"a": "lab1"}
    assert fleet.forget("lab2")


def test_a_machine_whose_name_is_too_long_keeps_no_run_from_others(fleet: FleetStore) -> None:
    """The names of assignments and campaigns contain it."""
    for each in (machine(), machine("lab2", "two")):
        fleet.announce(each.model_copy(update={"version": fslab.__version__}))
    _execute(fleet.store, "UPDATE fleet_machines SET name = repeat('x', 128) WHERE name = 'lab2'")
    assert [each.machine for each in starting.started(fleet, schedule())] == ["lab1"]


def looking(fleet: FleetStore, said: list[str]) -> starting.Scheduler:
    return starting.Scheduler(url="", give_up_s=3600, tell=said.append, fleet=fleet)


def listed(fleet: FleetStore) -> list[Assignment]:
    """Return all assignments, oldest first."""
    wanted = select(*fleet_sql.ASSIGNMENT).order_by(fleet_assignments.c.number)
    with fleet.store._reading() as connection:
        return [fleet_sql.to_assignment(row) for row in connection.execute(wanted).mappings()]


def unfinished(fleet: FleetStore) -> dict[str, str]:
    """Return the machine of each open assignment, by the assignment's id; oldest first."""
    return {each.id: each.machine for each in listed(fleet) if each.status in OPEN}


def test_a_clock_that_was_a_day_ahead_leaves_no_machine_and_no_lease(fleet: FleetStore) -> None:
    """The database's clock is set back: the times that it wrote before are in the future."""
    fleet.announce(machine())
    fleet.assign([assignment("a")])
    taken(fleet, "a", machine())
    _execute(fleet.store, "UPDATE fleet_machines SET last_seen = last_seen + interval '1 day'")
    _execute(fleet.store, "UPDATE fleet_assignments SET lease_until = lease_until + interval '1 day'")
    assert not fleet.machines()[0].is_online
    restarted = machine(identity="two")
    fleet.announce(restarted)
    again = taken(fleet, "a", restarted)
    assert again.epoch == 2


@pytest.mark.parametrize(("days", "way"), [(1, "forward"), (-1, "back")])
def test_no_machine_is_lost_by_a_step_of_the_database_s_clock(
    fleet: FleetStore, monkeypatch: pytest.MonkeyPatch, days: int, way: str
) -> None:
    """All machines seem to be away for a day, until each has reported again."""
    now, step_s = [1000.0], [0.0]
    monkeypatch.setattr("fslab.fleet.starting.time.monotonic", lambda: now[0])
    monkeypatch.setattr(FleetStore, "now", lambda _: datetime.fromtimestamp(now[0] + step_s[0], UTC))
    said: list[str] = []
    scheduling = looking(fleet, said)
    fleet.announce(machine())
    fleet.assign([assignment("a")])
    scheduling.look()
    assert fleet.queue("lab1") == ["a"]
    now[0] += starting.GRACE_S + 60
    scheduling.look()
    assert fleet.queue("lab1") == ["a"]
    step_s[0] = days * 86400
    _execute(fleet.store, f"UPDATE fleet_machines SET last_seen = last_seen - interval '{days} day'")
    scheduling.look()
    assert fleet.queue("lab1") == ["a"]
    assert said == [f"the database's clock was set {way} by 24 h 00 min"]
    now[0] += starting.GRACE_S + 60  # it does not report: it is lost
    scheduling.look()
    assert fleet.queue("lab1") == []


def test_who_takes_an_assignment_has_it_until_the_lease_is_over(fleet: FleetStore) -> None:
    fleet.assign([assignment("a"), assignment("b", on="lab2")])
    held = taken(fleet, "a", machine())
    assert (held.epoch, held.status) == (1, AssignmentStatus.RUNNING)
    assert fleet.take("b", machine()) is None  # assigned to another machine
    assert fleet.take("a", machine(identity="two")) is None
    _execute(fleet.store, "UPDATE fleet_assignments SET lease_until = now() - interval '1 second'")
    other = taken(fleet, "a", machine(identity="two"))
    assert other.epoch == 2
    assert not fleet.renew(held)
    assert not fleet.end(held, AssignmentStatus.FINISHED)
    assert fleet.renew(other)
    assert fleet.end(other, AssignmentStatus.FAILED, "no \x00 space")
    (ended,) = (each for each in listed(fleet) if each.machine == "lab1")
    assert (ended.status, ended.message) == (AssignmentStatus.FAILED, "no \\x00 space")
    assert ended.ended is not None
    assert fleet.take("a", machine(identity="two")) is None  # it has ended


def test_a_machine_runs_its_own_assignments_from_the_oldest(
    fleet: FleetStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that cannot be taken keeps no other from being run, however many there are. Its reason is told."""
    monkeypatch.setattr("fslab.store.fleet.MOST_QUEUED", 1)
    version = {"study": STUDY.model_copy(update={"version": fslab.__version__})}
    for name, on in (("a", "lab1"), ("b", "lab1"), ("c", "lab2"), ("d", "lab1")):
        fleet.assign([assignment(name, on).model_copy(update=version)])
    _execute(fleet.store, "UPDATE fleet_assignments SET epoch = 2147483647 WHERE id = 'a'")
    begun: list[str] = []

    def run(execution: Execution) -> Ending:
        begun.append(execution.held.id)
        return Ending(AssignmentStatus.FINISHED)

    monkeypatch.setattr(Execution, "run", run)
    serving = Agent(
        settings=WorkerSettings(name="lab1"), store="", tell=print, own=str(tmp_path / "own.sqlite")
    )
    assert serving._run_next(fleet, machine())
    assert serving._run_next(fleet, machine())
    with pytest.raises(StoreError, match="out of range"):
        serving._run_next(fleet, machine())
    assert begun == ["b", "d"]
    assert unfinished(fleet) == {"a": "lab1", "c": "lab2"}
    fleet.cancel("run")
    assert not serving._run_next(fleet, machine())


def test_the_same_machine_takes_up_its_own_again(fleet: FleetStore) -> None:
    fleet.assign([assignment("a")])
    first, second = (taken(fleet, "a", machine()) for _ in range(2))
    assert second.epoch == 2
    assert not fleet.renew(first)


def test_only_one_of_many_gets_an_assignment(fleet: FleetStore) -> None:
    fleet.assign([assignment("a")])
    taken = []

    def take(number: int) -> None:
        taken.append(fleet.take("a", machine(identity=str(number))))

    at_once(take, 8)
    assert len([each for each in taken if each]) == 1


def test_a_transaction_that_waited_takes_nothing_that_was_taken_meanwhile(
    fleet: FleetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began before the other one, whose lease so ends later than one from its own begin."""
    fleet.assign([assignment("a")])
    writing = fleet.store._writing

    @contextmanager
    def late() -> Iterator[Connection]:
        with writing() as connection:
            connection.execute(text("SELECT now()"))
            monkeypatch.setattr(fleet.store, "_writing", writing)
            assert fleet.take("a", machine()) is not None
            yield connection

    monkeypatch.setattr(fleet.store, "_writing", late)
    assert fleet.take("a", machine(identity="two")) is None


def test_a_cancelled_run_is_nobody_s(fleet: FleetStore) -> None:
    fleet.assign([assignment("a"), assignment("b", on="lab2")])
    held = taken(fleet, "a", machine())
    assert fleet.cancel("run") == 2
    assert fleet.cancel("run") == 0
    assert not fleet.renew(held)
    assert fleet.take("b", machine("lab2")) is None


def test_what_is_fenced_off_writes_no_trial(fleet: FleetStore, tmp_path: Path) -> None:
    """After another process has taken an assignment, trials of the previous holder are not stored."""
    made = campaign()
    with measured(tmp_path, made) as own:
        fleet.assign([assignment("a")])
        first, second = (taken(fleet, "a", machine()) for _ in range(2))
        with pytest.raises(FencedError):
            copy_campaign(own, fleet.store, made, fence=fleet.fence(first))
        assert fleet.store.campaigns() == []
        for _ in range(2):
            copied = copy_campaign(own, fleet.store, made, fence=fleet.fence(second), only_new=True)
        assert (copied.new, copied.present) == (0, 1)
        assert fleet.store.count(made.id) == 1
        fleet.cancel("run")
        with pytest.raises(FencedError):
            copy_campaign(own, fleet.store, made, fence=fleet.fence(second))


def test_trials_that_another_machine_wrote_into_a_campaign_end_its_assignment_as_failed(
    fleet: FleetStore, roles: str, tmp_path: Path
) -> None:
    """The role of all machines may add trials to any campaign: the machine that measured it finds them."""
    fleet.assign([assignment("c1")])
    made = campaign(status=CampaignStatus.FINISHED)
    with measured(tmp_path, made) as own, Store.open(roles.format("measuring")) as other:
        member = FleetStore(other)
        held = taken(member, "c1", machine())
        execution = Execution(held=held, fleet=member, settings=WorkerSettings(), own=own.path, tell=print)
        assert execution._sent(own, 0, "").status is AssignmentStatus.FINISHED
        other.add_trial(trial(block=7))
        ending = execution._sent(own, 0, "")
    assert ending.status is AssignmentStatus.FAILED
    assert "c1: has 1 of its trials that this machine did not measure" in str(ending.message)


def test_a_machine_that_lost_its_own_store_does_not_measure_what_it_cannot_send(
    fleet: FleetStore, tmp_path: Path
) -> None:
    """It was installed anew, or its agent has another data directory."""
    fleet.assign([assignment("c1")])
    made = campaign()
    with measured(tmp_path, made) as own:
        copy_campaign(own, fleet.store, made)
    with Store.open(str(tmp_path / "new.sqlite")) as new:
        held = taken(fleet, "c1", machine())
        execution = Execution(held=held, fleet=fleet, settings=WorkerSettings(), own=new.path, tell=print)
        ending = execution._run(new)
    assert ending.status is AssignmentStatus.FAILED
    assert "begun with other results" in str(ending.message)
    assert fleet.store.count(made.id) == 1


def test_a_campaign_that_is_deleted_while_a_machine_measures_it_is_not_sent_again(
    fleet: FleetStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, delete = campaign("a"), ["delete", "a", "--yes", "--force", "--store", fleet.store.path]
    with measured(tmp_path, made) as own:
        fleet.assign([assignment("a"), assignment("b", on="lab2")])
        held = taken(fleet, "a", machine())
        copy_campaign(own, fleet.store, made, fence=fleet.fence(held))
        has = fleet.store.has

        def deleted_just_then(name: str) -> bool:
            """The machine is about to send: it has read that the campaign is not there."""
            assert CliRunner().invoke(cli.app, delete).exit_code == 0
            return has(name)

        monkeypatch.setattr(fleet.store, "has", deleted_just_then)
        with pytest.raises(FencedError):
            copy_campaign(own, fleet.store, made, fence=fleet.fence(held))
    assert fleet.store.campaigns() == []
    assert not fleet.renew(held)
    assert unfinished(fleet) == {"b": "lab2"}
    assert listed(fleet)[0].message == "its campaign was deleted"


def test_what_a_machine_that_is_gone_was_to_run_has_failed(fleet: FleetStore) -> None:
    fleet.announce(machine())
    fleet.announce(machine("lab2", "two"))
    fleet.assign([assignment("a"), assignment("b", on="lab2"), assignment("c", on="removed")])
    _execute(
        fleet.store, "UPDATE fleet_machines SET last_seen = now() - interval '61 minutes' WHERE name = 'lab2'"
    )
    assert list(unfinished(fleet).items()) == [("a", "lab1"), ("b", "lab2"), ("c", "removed")]
    assert len(fleet_sql.give_up(fleet, None)) == 1  # removed machines alone
    assert len(fleet_sql.give_up(fleet, 3600)) == 1
    assert unfinished(fleet) == {"a": "lab1"}
    assert listed(fleet)[1].message == "the machine was not seen for 1 h 01 min"


def test_a_machine_that_is_forgotten_fails_at_once_without_a_scheduler(fleet: FleetStore) -> None:
    fleet.announce(machine())
    fleet.leave(machine())
    fleet.assign([assignment("a")])
    done = CliRunner().invoke(cli.app, ["fleet", "forget", "lab1", "--store", fleet.store.path])
    assert done.stdout.splitlines() == ["lab1 removed", "a: the machine was removed"]
    assert listed(fleet)[0].status is AssignmentStatus.FAILED


def share(name: str, on: str, *workloads: str) -> Assignment:
    study = STUDY.model_copy(update={"workloads": workloads, "name": f"night-{on}", "note": "a night"})
    return assignment(name, on).model_copy(update={"study": study})


def test_a_share_moves_whole_to_another_machine_of_its_run(fleet: FleetStore) -> None:
    """It begins anew, as a campaign of its own, and the lost machine can write nothing more."""
    one, gone = machine("lab1", "one"), machine("lab2", "two")
    for each in (one, gone, machine("lab3", "three"), machine("lab9", "nine")):
        fleet.announce(each)
    fleet.assign([share("a", "lab1", "w1"), share("b", "lab2", "w2", "w3"), share("c", "lab3", "w4")])
    fleet.assign([share("d", "lab1", "w5")])
    held = taken(fleet, "b", gone)
    assert fleet_sql.give_up(fleet, 3600) == []
    fleet.leave(gone)
    fleet.forget("lab2")
    assert fleet_sql.give_up(fleet, None) == ["b: the machine was removed: starts again on lab3"]
    assert fleet_sql.give_up(fleet, None) == []
    found = {each.id: each for each in listed(fleet)}
    new = found["run.2-lab3"]
    assert (new.machine, new.campaign, new.status) == ("lab3", "run.2-lab3", AssignmentStatus.QUEUED)
    assert (new.study.workloads, new.study.name) == (("w2", "w3"), None)
    assert new.study.note == "a night; moved from lab2 (b)"
    assert found["b"].status is AssignmentStatus.MOVED
    assert not fleet.renew(held)
    assert not fleet.end(held, AssignmentStatus.FINISHED)
    with pytest.raises(FencedError), fleet.store._writing() as connection:
        fleet.fence(held)(connection)
    assert fleet.take("b", gone) is None
    assert [each.campaign for each in fleet.summaries(run="run") if each.was_moved] == ["b"]


def test_a_moved_share_has_an_id_of_its_own(fleet: FleetStore) -> None:
    """Machine ``lab`` gets a second share. The first id of machine ``lab-2`` is ``run-lab-2``."""
    fleet.announce(machine("lab"))
    fleet.assign([share(f"run-{name}", name, name) for name in ("lab", "lab-2", "lab-3")])
    assert len(fleet_sql.give_up(fleet, None)) == 2
    assert len({each.campaign for each in listed(fleet)}) == 5


def test_a_share_that_no_machine_of_its_run_can_take_has_failed(fleet: FleetStore) -> None:
    """A machine that was not selected for the run, or has another version, does not get it."""
    fleet.announce(machine("lab9", "nine"))
    fleet.announce(machine("lab3", "three").model_copy(update={"version": "2"}))
    fleet.assign([share("b", "lab2", "w2"), share("c", "lab3", "w3")])
    assert fleet_sql.give_up(fleet, None) == [
        "b: the machine was removed, and no other machine of the run is online"
    ]
    assert unfinished(fleet) == {"c": "lab3"}


def test_the_last_runs_without_their_studies(fleet: FleetStore, tmp_path: Path) -> None:
    fleet.assign([assignment("a"), assignment("b", on="lab2")])
    later = assignment("c").model_copy(
        update={"run": "later", "campaign": campaign().id, "schedule": "nightly"}
    )
    fleet.assign([later])
    fleet.store.create_campaign(campaign())
    fleet.store.add_trial(trial())
    found = fleet.summaries(5)
    assert [(each.run, each.machine, each.trials) for each in found] == [
        ("later", "lab1", 1),
        ("run", "lab1", 0),
        ("run", "lab2", 0),
    ]
    assert (found[0].schedule, found[0].file) == ("nightly", "study.yaml")
    assert [each.run for each in fleet.summaries(1)] == ["later"]
    fleet.announce(machine())
    fleet.schedule(schedule(message="no <machine>"))
    page = app.fleet_page(fleet)
    assert "Machines online: 1 of 1; running a study: 0. 1 schedule could not be started." in page
    assert "no &lt;machine&gt;" in page
    assert f'<a href="/campaign/{campaign().id}">lab1</a>' in page


def schedule(name: str = "nightly", **values: Any) -> FleetSchedule:
    known = {"every_s": 86400, "next_run": datetime.now(UTC) - timedelta(hours=1), **values}
    return FleetSchedule(name=name, study=STUDY, **known)


def test_what_is_due_is_started_once_and_then_the_next_day(fleet: FleetStore) -> None:
    fleet.schedule(schedule("later", next_run=datetime.now(UTC) + timedelta(hours=1)))
    wanted = schedule(next_run=datetime.now(UTC) - timedelta(days=3, hours=1))
    fleet.schedule(wanted)
    assert fleet.start_due(lambda due: [assignment(due.name)])
    assert not fleet.start_due(lambda due: [assignment(f"{due.name}-again")])
    found = {each.name: each for each in fleet.schedules()}["nightly"]
    assert found.next_run == wanted.next_run + timedelta(days=4)  # missed starts are not repeated
    assert (found.last_run, found.message) == ("run", None)
    assert [each.id for each in listed(fleet)] == ["nightly"]
    assert fleet.unschedule("nightly")
    assert not fleet.unschedule("nightly")


def test_a_night_that_cannot_start_says_why(fleet: FleetStore) -> None:
    def refuse(_: FleetSchedule) -> list[Assignment]:
        raise UnsupportedError("no machine can run it")

    fleet.schedule(schedule())
    assert fleet.start_due(refuse)
    (found,) = fleet.schedules()
    assert (found.message, found.last_run) == ("no machine can run it", None)
    assert found.next_run > datetime.now(UTC)


@pytest.mark.parametrize(
    "values", ["study = '{\"newer\": 1}'", "study = '3'", "every_s = 0", "machines = '[1]'"]
)
def test_a_schedule_that_cannot_be_read_keeps_no_other_from_starting(fleet: FleetStore, values: str) -> None:
    """Another version of fslab can have made it."""
    fleet.announce(machine().model_copy(update={"version": fslab.__version__}))
    fleet.schedule(schedule("other", next_run=datetime.now(UTC) - timedelta(hours=2)))
    fleet.schedule(schedule())
    _execute(fleet.store, f"UPDATE fleet_schedules SET {values} WHERE name = 'other'")
    said: list[str] = []
    looking(fleet, said).look()
    assert said == []
    assert [each.machine for each in listed(fleet)] == ["lab1"]
    with fleet.store._reading() as connection:
        wanted = text("SELECT message, next_run > now() FROM fleet_schedules WHERE name = 'other'")
        ((why, is_later),) = connection.execute(wanted).all()
    assert "contains data that fslab did not write" in why
    assert is_later


def test_an_assignment_that_cannot_be_read_keeps_no_other_from_being_given_up(fleet: FleetStore) -> None:
    fleet.assign([assignment("a"), assignment("b")])
    _execute(fleet.store, "UPDATE fleet_assignments SET study = '{\"newer\": 1}' WHERE id = 'a'")
    lines = fleet_sql.give_up(fleet, None)
    assert "did not write" in lines[0]
    assert lines[1:] == ["b: the machine was removed"]
    assert fleet.queue("lab1") == []


def test_two_schedulers_start_a_night_once(fleet: FleetStore) -> None:
    fleet.schedule(schedule())
    begun = []

    def begin(due: FleetSchedule) -> list[Assignment]:
        begun.append(due.name)
        time.sleep(0.2)
        return [assignment(f"{due.name}-{len(begun)}")]

    at_once(lambda _: fleet.start_due(begin), 4)
    assert begun == ["nightly"]


@pytest.fixture
def roles(cluster: postgresql.Cluster, fleet: FleetStore) -> str:
    """Create a measuring and a reading role. Return the database's URL, with {} for one of these two words.

    Roles belong to the server, not to one database: their names contain the database's name.
    """
    name = fleet.store.path.rpartition("/")[2].partition("?")[0]
    for role in ("measuring", "reading"):
        cluster.execute(f'CREATE ROLE "{role} {name}" LOGIN')
    grant(fleet.store, measuring=f"measuring {name}", reading=f"reading {name}")
    return cluster.url_of(name).replace("fslab@", f"{{}}%20{name}@")


def test_a_machine_measures_and_cannot_delete_or_assign(
    fleet: FleetStore, roles: str, tmp_path: Path
) -> None:
    fleet.assign([assignment("a")])
    made = campaign()
    with measured(tmp_path, made) as own, Store.open(roles.format("measuring")) as store:
        member = FleetStore(store)
        member.announce(machine())
        held = taken(member, "a", machine())
        copied = copy_campaign(own, store, made, fence=member.fence(held))
        assert copied.new == 1
        assert member.renew(held)
        assert member.end(held, AssignmentStatus.FINISHED)
        for attempt in (
            lambda: store.delete_campaign(made.id),
            lambda: member.assign([assignment("b")]),
            lambda: member.forget("lab1"),
            lambda: _execute(store, "UPDATE fleet_assignments SET machine = 'lab2'"),
            lambda: _execute(store, "UPDATE fleet_assignments SET study = '{}'"),
            lambda: _execute(store, "UPDATE campaigns SET machine = '{}'"),
            lambda: _execute(store, "UPDATE campaigns SET study_source = ''"),
            lambda: _execute(store, "UPDATE campaigns SET created = now(), name = 'mine'"),
            lambda: _execute(store, "DELETE FROM trials"),
        ):
            with pytest.raises(StoreError, match="permission denied"):
                attempt()


def test_a_reader_reads(fleet: FleetStore, roles: str) -> None:
    fleet.store.create_campaign(campaign())
    with Store.open(roles.format("reading"), create=False) as store:
        assert [each.id for each in store.campaigns()] == [campaign().id]
        assert FleetStore(store).machines() == []
        with pytest.raises(StoreError, match="permission denied"):
            store.name_campaign(campaign().id, "mine")


def test_a_role_that_measured_can_become_a_reader(fleet: FleetStore, roles: str) -> None:
    name = fleet.store.path.rpartition("/")[2].partition("?")[0]
    grant(fleet.store, reading=f"measuring {name}")
    with Store.open(roles.format("measuring"), create=False) as store:
        with pytest.raises(StoreError, match="permission denied"):
            store.create_campaign(campaign())
        with pytest.raises(StoreError, match="permission denied"):
            _execute(store, "SELECT nextval('campaigns_number_seq')")


def test_a_role_that_could_create_functions_for_others_to_call_gets_no_rights(
    cluster: postgresql.Cluster, fleet: FleetStore, roles: str
) -> None:
    """Before PostgreSQL 15, all roles may create objects in ``public``: also an operator that fits the texts of a
    store better than the server's own, and that its owner would call."""
    name = fleet.store.path.rpartition("/")[2].partition("?")[0]
    _execute(fleet.store, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    grant(fleet.store, measuring=f"measuring {name}")
    with Store.open(roles.format("measuring"), create=False) as store:
        with store.running("c1"):
            assert fleet.store.is_running("c1")
        with pytest.raises(StoreError, match="permission denied for schema public"):
            _execute(store, "CREATE FUNCTION evil() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    cluster.execute(f'CREATE ROLE "group {name}"')
    cluster.execute(f'GRANT "group {name}" TO "reading {name}"')
    _execute(fleet.store, f'GRANT CREATE ON SCHEMA public TO "group {name}"')
    with pytest.raises(StoreError, match=f"'reading {name}' can create functions"):
        grant(fleet.store, reading=f"reading {name}")


FUNCTION = "CREATE FUNCTION {}({}) RETURNS boolean LANGUAGE sql AS 'SELECT true'; "
OPERATOR = "CREATE OPERATOR = (FUNCTION = evil, LEFTARG = varchar, RIGHTARG = varchar)"


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (FUNCTION.format("evil", "varchar, varchar") + OPERATOR, "operator '='"),
        (FUNCTION.format("max", "varchar"), "function 'max'"),
        (FUNCTION.format("harmless", ""), None),
    ],
)
def test_code_that_a_role_made_before_it_lost_the_right_is_not_run(
    fleet: FleetStore, roles: str, made: str, found: str | None
) -> None:
    """The server would take such an operator for the one that compares texts, and run it as the owner."""
    name = fleet.store.path.rpartition("/")[2].partition("?")[0]
    _execute(fleet.store, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    with Store.open(roles.format("measuring"), create=False) as store:
        _execute(store, made)
    grant(fleet.store, measuring=f"measuring {name}")
    url = roles.format("reading")
    if found is None:
        Store.open(url, create=False).close()
        return
    with pytest.raises(StoreError, match=f"the {found} belongs to the role 'measuring {name}'"):
        Store.open(url, create=False)


def test_a_table_that_another_role_made_first_is_no_part_of_a_store(cluster: postgresql.Cluster) -> None:
    name = cluster.database()
    cluster.execute(f'CREATE ROLE "first {name}" LOGIN')
    url = cluster.url_of(name)
    sql(url, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    sql(url.replace("fslab@", f"first%20{name}@"), "CREATE TABLE deletions (campaign bigint PRIMARY KEY)")
    with pytest.raises(StoreError, match=f"the table 'deletions' belongs to the role 'first {name}'"):
        Store.open(url)


def test_roles_are_of_a_server(tmp_path: Path, fleet: FleetStore) -> None:
    with (
        Store.open(str(tmp_path / "a.sqlite")) as store,
        pytest.raises(StoreError, match="SQLite store has no roles"),
    ):
        grant(store, reading="x")
    with pytest.raises(StoreError, match='role "no; such" does not exist'):
        grant(fleet.store, reading="no; such")


def _execute(store: Store, statement: str) -> None:
    with store._writing() as connection:
        connection.exec_driver_sql(statement)


def test_how_far_one_run_is_and_those_that_are_not_over(fleet: FleetStore) -> None:
    fleet.assign([assignment("a"), assignment("b", on="lab2")])
    fleet.assign([assignment("c").model_copy(update={"run": "over"})])
    fleet.cancel("over")
    assert [each.machine for each in fleet.summaries(run="run")] == ["lab1", "lab2"]
    assert {each.run for each in fleet.summaries()} == {"run"}
    assert [each.run for each in fleet.summaries(run="over")] == ["over"]
    assert fleet.summaries(run="none") == []


def test_the_commands_that_a_run_names_are_for_its_store(fleet: FleetStore) -> None:
    fleet.announce(machine().model_copy(update={"version": fslab.__version__}))
    option = ["--store", fleet.store.path]
    ran = CliRunner().invoke(cli.app, ["run", "quick", "--fleet", "--detach", *option])
    (made,) = fleet.summaries()
    assert f"fslab fleet status {made.run} --store {fleet.store.path}" in ran.output.replace("'", "")
    unknown = CliRunner().invoke(cli.app, ["fleet", "cancel", "nothing", *option])
    assert f"fslab fleet status --store {fleet.store.path}" in str(
        getattr(unknown.exception, "hint", "")
    ).replace("'", "")


def test_a_campaign_of_a_cancelled_run_is_not_shown_as_running(fleet: FleetStore, tmp_path: Path) -> None:
    """Its machine may store nothing more, not even that it ended."""
    fleet.assign([assignment("c1")])
    made = campaign().model_copy(update={"machine": {"hostname": "elsewhere"}}).with_settings(fleet_run="run")
    with measured(tmp_path, made) as own:
        copy_campaign(own, fleet.store, made)
    assert as_it_is(fleet.store.campaign("c1"), fleet.store).status is CampaignStatus.RUNNING
    assert not outdated(fleet.store, older_than_s=0, keep=0)
    fleet.cancel("run")
    assert [each.id for each in outdated(fleet.store, older_than_s=0, keep=0)] == ["c1"]
    shown = CliRunner().invoke(cli.app, ["results", "c1", "--store", fleet.store.path]).output
    assert "interrupted" in shown
    assert "--resume" not in shown, "only its machine could"
