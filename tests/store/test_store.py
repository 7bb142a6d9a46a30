"""Tests of the store: it returns what was stored, refuses duplicates and changes, and stores unknown values as null."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from tests.store.sql import sql

from fslab.analysis.table_rows import looks_of
from fslab.campaign.observer import Observer
from fslab.campaign.schedule import Schedule
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.campaign.trial_loop import TrialHistory, _CampaignRun
from fslab.cell import Cache, Cell, Fresh, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.claims.schema import Claim
from fslab.errors import StoreError
from fslab.feasibility._campaign import RefusingJournal
from fslab.stopping_settings import StoppingRule
from fslab.storage import Workspace
from fslab.store import queries, rows, schema
from fslab.store.campaign import Campaign, CampaignSettings, CampaignStatus, RunBudget
from fslab.store.store import Store
from fslab.trial_record import (
    Command,
    Provenance,
    Severity,
    Status,
    TrialRecord,
    ValidityWarning,
    Value,
)
from fslab.units import Unit

STARTED = datetime(2026, 11, 20, 21, 49, 7, 123456, tzinfo=UTC)


def cell(filesystem: str | None = "xfs", bs: str = "4k", **more: Any) -> Cell:
    medium = MediumSpec(name="disk", type="ram", options={"size": "1g", "count": 2, "sparse": False})
    stack = StackSpec(name=filesystem or "here", medium=medium, filesystem=filesystem, mkfs_options="-m 0")
    parameters = {"rw": "randwrite", "bs": bs, "iodepth": 32, "rate": 1.0, "direct": True}
    return Cell(stack=stack, workload=WorkloadSpec(name="rand", tool="fio", parameters=parameters), **more)


CELLS = (
    cell(),
    cell("ext4", cache=Cache.WARM, fresh=Fresh.CELL, tuning={"governor": "performance"}),
    cell(None, "64k"),
)


def campaign(name: str = "c1", **more: Any) -> Campaign:
    fields: dict[str, Any] = {
        "id": name, "study_id": "quick", "study_title": "Quick – a first look", "study_source": "title: é\n",
        "settings": {"set": ["size=1g"], "budget_s": None}, "seed": 2**64 - 1, "cells": CELLS, "trials": 5,
        "machine": {"kernel": "6.18.44", "memory_bytes": 25 * 10**9, "cpu": None}, "created": STARTED,
    }  # fmt: skip
    return Campaign(**{**fields, **more})


def trial(block: int = 0, of: Cell = CELLS[0], in_campaign: str = "c1", **more: Any) -> TrialRecord:
    warning = ValidityWarning(
        kind="cpu_saturated", severity=Severity.WARNING, message="busy", data={"percent": 99.5}
    )
    fields: dict[str, Any] = {
        "key": TrialKey(campaign=in_campaign, block=block, seed=2**63 + block), "cell": of,
        "status": Status.OK, "started": STARTED, "duration_s": 2.5,
        "metrics": {
            "write_iops": Value(value=61700.25, unit=Unit.IOPS),
            "p99": Value(value=None, unit=Unit.NANOSECONDS),
            "errors": Value(value=0.0, unit=Unit.COUNT),
        },
        "probes": {"written": Value(value=1.5e12, unit=Unit.BYTES)},
        "validity": (warning, warning.model_copy(update={"hint": "fewer jobs", "severity": Severity.NOTE})),
        "provenance": Provenance(
            commands=(Command(stage="mkfs", argv=("mkfs.xfs", "/dev/a b"), duration_s=0.1, exit_code=0),),
            tools={"fio": "fio-3.33", "dd": None},
            machine={"kernel": "6.18.44"}, device={"size_bytes": 2**31},
        ),
    }  # fmt: skip
    return TrialRecord(**{**fields, **more})


@pytest.fixture
def begun(store: Store) -> Store:
    """Return a store with the campaign c1, which has no trial yet."""
    store.create_campaign(campaign())
    return store


def test_campaign_comes_back_as_it_was(begun: Store) -> None:
    assert begun.campaign("c1") == campaign()
    assert [known.id for known in begun.campaign("c1").cells] == [known.id for known in CELLS]


def test_trial_comes_back_as_it_was(begun: Store) -> None:
    failed = trial(
        1, CELLS[2], status=Status.FAILED, failure="no_space", error="disk full", metrics={}, validity=()
    )
    begun.add_trial(trial())
    begun.add_trial(failed)
    assert begun.trials("c1") == [trial(), failed]
    assert list(begun.trials("c1")[0].metrics) == ["write_iops", "p99", "errors"]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"duration_s": 1e300}, "duration_s"),
        ({"duration_s": inf}, "duration_s"),
        (
            {"provenance": Provenance().model_copy(update={"machine": {"kernel": 5}})},
            "'kernel' must be of type str",
        ),
        ({"provenance": Provenance().model_copy(update={"device": {"filesystem": []}})}, "'filesystem'"),
    ],
)
def test_what_no_trial_has_is_not_read(begun: Store, changed: dict[str, Any], fault: str) -> None:
    """Records with impossible values are rejected, whoever wrote them: reports add up times and format these facts."""
    begun.add_trial(trial().model_copy(update=changed))
    with pytest.raises(StoreError, match=fault):
        begun.trials("c1")


def test_trial_is_there_after_reopening(begun: Store, url: str) -> None:
    begun.add_trial(trial())
    begun.close()
    with Store.open(url) as again:
        assert again.trials("c1") == [trial()]


def test_unknown_is_null_and_zero_is_zero(begun: Store, url: str) -> None:
    unknown = {name: Value(value=value, unit=Unit.COUNT) for name, value in (("nan", nan), ("inf", inf))}
    begun.add_trial(trial(probes=unknown))
    rows = sql(url, "SELECT name, value FROM metrics UNION SELECT name, value FROM probes")
    assert dict(rows) == {"write_iops": 61700.25, "p99": None, "errors": 0.0, "nan": None, "inf": None}


def test_times_in_another_zone_are_the_same_instant(begun: Store) -> None:
    berlin = STARTED.astimezone(timezone(timedelta(hours=1)))
    begun.add_trial(trial(started=berlin))
    (found,) = begun.trials("c1")
    assert found.started == STARTED
    assert found.started.utcoffset() == timedelta(0)


def test_same_trial_twice_is_refused_and_the_first_stays(begun: Store) -> None:
    begun.add_trial(trial())
    with pytest.raises(StoreError, match=r"trial 0 of cell .* is stored already"):
        begun.add_trial(trial(duration_s=9.0))
    assert begun.trials("c1") == [trial()]


def test_same_block_of_other_cell_or_campaign_is_another_trial(begun: Store) -> None:
    begun.create_campaign(campaign("c2"))
    for record in (trial(), trial(1), trial(0, CELLS[1]), trial(in_campaign="c2")):
        begun.add_trial(record)
    assert begun.finished("c1") == {(CELLS[0].id, 0), (CELLS[0].id, 1), (CELLS[1].id, 0)}
    assert begun.finished("c2") == {(CELLS[0].id, 0)}
    assert [record.key.campaign for record in begun.trials("c2")] == ["c2"]


def test_trial_of_unknown_campaign_or_cell_is_refused(store: Store) -> None:
    store.create_campaign(campaign(cells=CELLS[:1]))
    for stranger in (trial(in_campaign="c9"), trial(0, CELLS[1])):
        with pytest.raises(StoreError, match="no such campaign or cell"):
            store.add_trial(stranger)
    assert store.finished("c1") == set()


def test_trial_is_stored_whole_or_not_at_all(begun: Store, monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fslab.store.rows.raw_rows", fail)  # the raw output is written last
        with pytest.raises(KeyboardInterrupt):
            begun.add_trial(trial())
    assert begun.finished("c1") == set()
    begun.add_trial(trial())
    assert begun.trials("c1") == [trial()]


def test_no_text_is_too_strange_to_be_kept(store: Store) -> None:
    """Error messages, tool output, names and notes can contain NUL bytes and invalid Unicode. They are stored."""
    strange = "end\0of \udcff\ud800 \U0001f4be \u2028\x7f"
    warning = ValidityWarning(
        kind="k", severity=Severity.NOTE, message=strange, hint=strange, data={"said": strange}
    )
    store.create_campaign(campaign(note=strange, study_source=strange, settings={"set": [strange]}))
    store.add_trial(
        trial(
            status=Status.FAILED,
            failure="crashed",
            error=strange,
            validity=(warning,),
            raw={"stderr": strange},
            provenance=Provenance(machine={"model": strange}, tools={strange: strange}),
        )
    )
    store.note_campaign("c1", strange)
    assert len(store.campaigns()) == 1
    (found,) = store.trials("c1", raw=True)
    assert found.raw == {"stderr": strange}
    assert found.error is not None
    assert found.error.startswith("end")
    assert "\U0001f4be" in found.error


RAW = {"fio.json": "{}\n" * 10_000, "stderr": "", "odd": "\udcff\0ü"}


def test_raw_output_is_kept_compressed_and_given_when_asked(begun: Store, url: str) -> None:
    begun.add_trial(trial(raw=RAW))
    begun.add_trial(trial(1))
    assert [record.raw for record in begun.trials("c1")] == [{}, {}]
    assert [record.raw for record in begun.trials("c1", raw=True)] == [RAW, {}]
    ((size,),) = sql(url, "SELECT length(zlib) FROM raw_output WHERE name='fio.json'")
    assert size < 1000


@pytest.mark.parametrize("table", schema.IMMUTABLE)
@pytest.mark.parametrize("change", ["UPDATE {} SET {} = {}", "DELETE FROM {}"])
def test_database_refuses_to_change_a_trial(begun: Store, url: str, table: str, change: str) -> None:
    begun.add_trial(trial(raw=RAW))
    begun.add_traced(trial(status=Status.TRACED))
    key = schema.metadata.tables[table].columns.keys()[0]
    with pytest.raises(DBAPIError, match="trials are immutable"):
        sql(url, change.format(table, key, key))


def test_traced_trials_stand_apart_and_are_never_sound(store: Store) -> None:
    from fslab.analysis.usable_trials import is_failed, is_invalid, is_usable

    store.create_campaign(campaign())
    traced = trial(status=Status.TRACED)
    store.add_traced(traced)
    store.add_traced(traced)
    assert store.trials("c1") == []
    assert store.finished("c1") == set()
    assert store.traced("c1") == [traced, traced]
    assert not any(judge(traced) for judge in (is_usable, is_invalid, is_failed))
    with pytest.raises(StoreError, match="no campaign"):
        store.add_traced(trial(in_campaign="other"))


def test_a_campaign_that_was_deleted_has_no_empty_answer(store: Store) -> None:
    for read in (store.trials, store.count, store.finished, store.traced, store.count_traced):
        with pytest.raises(StoreError, match="no campaign 'gone'"):
            read("gone")


def test_what_is_too_long_or_too_deep_has_a_bound(store: Store) -> None:
    """A text of 100 MB would make a page of 300 MB; a document can be nested too deeply for its conversion."""
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    store.create_campaign(campaign())
    with pytest.raises(StoreError, match="nested too deeply"):
        store.add_trial(trial(1, provenance=Provenance.model_construct(device={"a": deep})))
    long = "x" * (rows.LONGEST_TEXT + 1)
    warning = ValidityWarning(kind="too_long", severity=Severity.NOTE, message=long, hint=long)
    store.add_trial(trial(status=Status.FAILED, failure="crashed", error=long, validity=(warning,)))
    (found,) = store.trials("c1")
    (warned,) = found.validity
    assert {found.error, warned.message, warned.hint} == {"x" * rows.LONGEST_TEXT}


def test_status_can_change_and_nothing_else_does(begun: Store) -> None:
    begun.set_campaign_status("c1", CampaignStatus.BUDGET_SPENT)
    assert begun.campaign() == campaign(status=CampaignStatus.BUDGET_SPENT)
    with pytest.raises(StoreError, match="no campaign 'c'"):
        begun.set_campaign_status("c", CampaignStatus.FINISHED)  # requires the full id


def test_settings_are_read_as_they_were_stored(store: Store) -> None:
    """A claim may omit a list, but no list may be empty: what a claim does not say is not stored."""
    settings = CampaignSettings(
        set=("size=1g",), budget_s=60.0, stopping=StoppingRule(trials=5, precision=0.05), user_id=1000,
        claims=(Claim.model_validate({"says": "xfs is faster", "that": "xfs > ext4"}),), files={"a.job": "é"},
        runs=(RunBudget(began=STARTED, budget_s=None),),
    )  # fmt: skip
    known = campaign(settings=settings)
    store.create_campaign(known)
    assert store.campaign("c1").settings == settings
    assert rows.campaign_row(known)["settings"]["claims"] == [
        {"says": "xfs is faster", "that": ["xfs > ext4"]}
    ]


def test_a_campaign_can_get_more_trials(begun: Store) -> None:
    known = begun.campaign("c1")
    begun.extend_campaign(known.extended(trials=known.trials + 3))
    more = begun.campaign("c1")
    assert (more.trials, more.stopping.trials) == (known.trials + 3, known.trials + 3)
    assert more.settings.extended_from == (known.trials,)
    assert more.cells == known.cells
    with pytest.raises(ValueError, match="already"):
        more.extended(trials=known.trials)
    with pytest.raises(ValueError, match="--max-trials does not apply"):
        more.extended(max_trials=100)


def test_with_a_precision_only_the_most_can_grow() -> None:
    known = campaign(settings={"stopping": {"trials": 5, "precision": 0.05, "max_trials": 20}})
    assert known.extended(max_trials=40).stopping.most == 40
    twice = known.extended(max_trials=40).extended(max_trials=60)
    # The interim analyses follow from the maximum that was planned before any trial was seen.
    looks = looks_of(twice.stopping)
    assert looks == looks_of(known.stopping)
    with pytest.raises(ValueError, match="--trials does not apply"):
        known.extended(trials=10)
    with pytest.raises(ValueError, match="at most 100000 trials"):
        known.extended(max_trials=100_001)


def test_the_looks_that_a_budget_pays_for_are_stored_before_the_first_one(
    store: Store, tmp_path: Path
) -> None:
    """A resumed campaign and its report use the same. Three blocks of three workloads took 22.5 s."""
    store.create_campaign(
        campaign(settings={"stopping": {"trials": 3, "precision": 0.1, "max_trials": 40}}, trials=3)
    )
    known = store.campaign("c1")
    workspace = Workspace(campaign="c1", runtime=tmp_path, images=tmp_path, journal=RefusingJournal())
    schedule = Schedule(cells=known.cells, stopping=known.stopping, seed=1, budget_s=60.0)
    run = _CampaignRun(
        campaign=known, store=store, observer=Observer(), workspace=workspace, schedule=schedule, budget_s=60.0,
        history=TrialHistory(records=[trial(block, of) for block, of in schedule.trials]), finished=set(),
        machines=TrialMachines(workspace=workspace), begun=0.0,
    )  # fmt: skip
    run._spend_error_within_budget()
    assert store.campaign("c1").stopping.planned_most == 13
    assert looks_of(store.campaign("c1").stopping) == looks_of(schedule.stopping)
    assert schedule.analysis.stopping == schedule.stopping
    assert looks_of(schedule.stopping) != looks_of(known.stopping)


def test_campaign_id_is_taken_once(begun: Store) -> None:
    with pytest.raises(StoreError, match="already a campaign 'c1'"):
        begun.create_campaign(campaign(study_id="other"))
    assert [known.study_id for known in begun.campaigns()] == ["quick"]


def test_campaign_with_the_same_cell_twice_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="same cell twice"):
        store.create_campaign(campaign(cells=(CELLS[0], CELLS[0])))
    assert store.campaigns() == []


def test_campaigns_are_found_by_id_prefix_and_last(store: Store) -> None:
    for name, day in (("20261120-a", 3), ("20261120-b", 2), ("20261121-a", 1)):
        store.create_campaign(campaign(name, created=STARTED - timedelta(days=day)))
    assert [known.id for known in store.campaigns()] == ["20261120-a", "20261120-b", "20261121-a"]
    assert store.campaign().id == "20261121-a"
    assert store.campaign("last").id == store.campaign("last~0").id == "20261121-a"
    assert store.campaign("last~1").id == store.campaigns()[-2].id
    assert store.campaigns("quick") == store.campaigns()
    assert store.campaigns("another") == []
    for wanted in ("quick", "studies/quick.yaml", "last", "20261121-a"):
        assert store.last_of(wanted).id == "20261121-a"
    with pytest.raises(StoreError, match="the store has"):
        store.campaign("last~99")
    assert store.campaign("20261120-b").id == "20261120-b"
    assert store.campaign("20261121").id == "20261121-a"


def test_prefix_that_is_a_whole_id_means_that_one(store: Store) -> None:
    store.create_campaign(campaign("ab"))
    store.create_campaign(campaign("abc"))
    assert store.campaign("ab").id == "ab"


def test_mistaken_campaign_gets_advice(store: Store) -> None:
    with pytest.raises(StoreError, match="no campaign yet"):
        store.campaign()
    store.create_campaign(campaign("maple-1"))
    store.create_campaign(campaign("maple-2"))
    with pytest.raises(StoreError, match="write more of the id: maple-1, maple-2"):
        store.campaign("map")
    with pytest.raises(StoreError, match="did you mean 'maple-1'"):
        store.campaign("mapel-1")
    with pytest.raises(StoreError, match="known: maple-1, maple-2"):
        store.campaign("")


def test_only_some_figures_and_the_provenance_of_the_first_block(begun: Store) -> None:
    """Reports of very many trials load only some metrics, and provenance only of the first block.

    Warnings are always loaded, because they decide which trials are compared.
    """
    stored = [trial(block) for block in (0, 1)]
    for each in stored:
        begun.add_trial(each)
    name = next(iter(stored[0].metrics))
    first, second = begun.trials("c1", only=[name])
    assert first.metrics == second.metrics == {name: stored[0].metrics[name]}
    assert first.probes == second.probes == {}
    assert first.validity == second.validity == stored[0].validity
    assert first.provenance == stored[0].provenance
    assert second.provenance == Provenance()


def test_no_campaign_of_others_can_take_the_place_of_the_last_one(store: Store) -> None:
    """Who else writes to a store can give a campaign any name and any number of trials."""
    for name in ("a", "b"):
        store.create_campaign(campaign(name))
    with store._writing() as connection:
        connection.exec_driver_sql("UPDATE campaigns SET name = 'last' WHERE id = 'a'")
    assert store.campaign("last").id == "b"
    with store._writing() as connection:
        connection.exec_driver_sql("UPDATE campaigns SET trials = -1 WHERE id = 'a'")
    assert [each.id for each in store.campaigns()] == ["b"]
    with pytest.raises(StoreError, match="contains data that fslab did not write: trials"):
        store.campaign("a")


def test_the_last_campaign_is_the_newest_one(store: Store) -> None:
    """Copies are stored later than they were created."""
    for days in (2, 0, 1):
        store.create_campaign(campaign(f"day{days}", created=STARTED + timedelta(days=days)))
    assert [each.id for each in store.campaigns()] == ["day0", "day1", "day2"]
    assert [store.campaign(wanted).id for wanted in ("last", "last~1", "last~2")] == ["day2", "day1", "day0"]
    assert store.last_of("quick").id == "day2"


def test_a_campaign_of_a_clock_that_was_ahead_is_the_last_one_until_the_next_one_is_stored(
    store: Store,
) -> None:
    now = datetime.now(UTC)
    store.create_campaign(campaign("before", created=now - timedelta(hours=2)))
    store.create_campaign(campaign("ahead", created=now + timedelta(days=1000)))
    assert store.campaign().id == store.last_of("quick").id == "ahead"
    store.create_campaign(campaign("after", created=now - timedelta(hours=1)))
    store.create_campaign(campaign("copy", created=now - timedelta(hours=3)))
    assert [each.id for each in store.campaigns()] == ["copy", "before", "ahead", "after"]
    assert [store.campaign(wanted).id for wanted in ("last", "last~1")] == ["after", "ahead"]
    store.create_campaign(campaign("behind", created=datetime.fromtimestamp(99, UTC)))
    assert store.campaign().id == "behind"


def test_a_trial_that_is_stored_meanwhile_is_read_whole_or_not_at_all(
    begun: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun.add_trial(trial(0))
    read, later = queries._belonging, [trial(1)]

    def interrupted(*arguments: Any) -> Any:
        found = read(*arguments)
        with Store.open(url) as other:
            while later:
                other.add_trial(later.pop())
        return found

    monkeypatch.setattr(queries, "_belonging", interrupted)
    assert begun.trials("c1") == [trial(0)]
    monkeypatch.undo()
    assert begun.trials("c1") == [trial(0), trial(1)]


def test_a_campaign_that_is_stored_meanwhile_is_read_with_its_cells_or_not_at_all(
    begun: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, later = rows.to_cell, [campaign("c2")]

    def interrupted(spec: Any) -> Cell:
        with Store.open(url) as other:
            while later:
                other.create_campaign(later.pop())
        return read(spec)

    monkeypatch.setattr(rows, "to_cell", interrupted)
    assert begun.campaigns() == [campaign()]


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_no_cell_has_a_number_that_the_store_cannot_keep(value: float) -> None:
    with pytest.raises(ValidationError, match="finite number"):
        WorkloadSpec(name="w", tool="fio", parameters={"x": value})
    with pytest.raises(ValidationError, match="finite number"):
        MediumSpec(name="m", type="ram", options={"x": value})
