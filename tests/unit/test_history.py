"""Tests of the history of a study: changes of level, facts that changed at the same time, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.made import known
from tests.unit.terminal import printed
from tests.unit.test_compare_likeness import in_slices
from typer.testing import CliRunner

from fslab.analysis.history import History, history
from fslab.answers.verdict_words import change_words
from fslab.api import comparisons
from fslab.cell import Cell, MachineSpec, WorkloadSpec
from fslab.cli import app
from fslab.cli.compare import history as verb
from fslab.errors import StoreError, UsageError
from fslab.report import fleet_terminal, history_terminal
from fslab.report.page import render
from fslab.stats import Interval
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.trial_record import Metric, Provenance, TrialRecord
from fslab.units import Direction, Unit, format_value

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)
IOPS = Metric(name="write_iops", unit=Unit.IOPS)
CELL = made.cell(parameters={"bs": "4k"}, name="commit")
STEPS = (0.98, 0.99, 1.0, 1.01, 1.02)
# Twelve nights: six on one level, then six on a level that is 12 % lower. Each night differs slightly from its level.
OFF = (1.0, 1.003, 0.998, 1.001, 0.997, 1.002)
LEVELS = [100.0 * off for off in OFF] + [88.0 * off for off in OFF]


def night(
    number: int, middle: float, *, cells: Sequence[Cell] = (CELL,), name: str = "", **facts: Any
) -> tuple[Campaign, list[TrialRecord]]:
    name = f"202611{number + 1:02d}-a{name}"
    machine = {"hostname": "lab", "kernel": "6.1.0-25", "boot_id": str(number), **facts}
    campaign = made.campaign(
        name, study_id="nightly", cells=tuple(cells), created=BEGUN + timedelta(days=number), machine=machine
    )
    provenance = Provenance(machine=machine, tools={"fio": "3.33"})
    trials = [
        made.trial(
            block, cells[0], campaign=name, started=campaign.created, metrics=made.iops(middle * step),
            provenance=provenance,
        )
        for block, step in enumerate(STEPS)
    ]  # fmt: skip
    return campaign, trials


def kernel_of(number: int) -> str:
    return "6.1.0-26" if number >= 6 else "6.1.0-25"


NIGHTS = [night(number, value, kernel=kernel_of(number)) for number, value in enumerate(LEVELS)]


def told(past: Sequence[tuple[Campaign, list[TrialRecord]]], **more: Any) -> History:
    return history(past, metrics_of=lambda _: (IOPS,), **more)


def shown(found: History) -> str:
    return printed(history_terminal.show, found, width=100)


def test_a_change_of_level_is_found_measured_and_named_with_what_changed_there() -> None:
    found = told(NIGHTS)
    (series,) = found.series
    assert [point.median for point in series.points] == pytest.approx(LEVELS)
    (change,) = series.changes
    assert (change.before, change.since) == ("20261106-a", "20261107-a")
    assert change.ratio == pytest.approx(0.88, rel=0.005)
    assert 0.87 < known(change.interval).low < 0.88 < known(change.interval).high < 0.89
    assert [(fact.fact, fact.a, fact.b) for fact in change.facts] == [
        ("kernel", ("6.1.0-25",), ("6.1.0-26",))
    ]
    assert [(step.before, step.after) for step in found.steps] == [("20261106-a", "20261107-a")]
    said = " ".join(shown(found).split())
    assert "since 20261107-a: 12 % slower (1" in said
    assert "changed at the same time: kernel: 6.1.0-25 → 6.1.0-26" in said
    assert "no change" not in said


def test_without_a_change_of_facts_it_says_so() -> None:
    said = " ".join(shown(told([night(number, value) for number, value in enumerate(LEVELS)])).split())
    assert "no known fact of the machine changed" in said


def test_a_change_from_whole_trials_to_slices_is_named() -> None:
    past = [night(number, value) for number, value in enumerate(LEVELS)]
    past = [
        (campaign, [*map(in_slices, own)] if place >= 6 else own)
        for place, (campaign, own) in enumerate(past)
    ]
    (change,) = told(past).series[0].changes
    assert [(fact.fact, fact.a, fact.b) for fact in change.facts] == [("slices", ("no",), ("yes",))]


def test_a_drift_is_no_change_of_the_kernel() -> None:
    """A line fits it better than two levels. A step stays one, also if the machine drifts a little."""
    past = [
        night(number, 100 * 0.99**number * off, kernel=kernel_of(number))
        for number, off in enumerate(OFF * 2)
    ]
    (change,) = told(past).series[0].changes
    assert "a steady drift fits better" in change.words
    steps = [night(number, value * 0.999**number) for number, value in enumerate(LEVELS)]
    (change,) = told(steps).series[0].changes
    assert "drift" not in change.words


def test_noise_and_one_odd_night_are_no_change() -> None:
    quiet = told([night(number, 100 * off) for number, off in enumerate(OFF * 2)])
    assert quiet.series[0].changes == ()
    odd = told([night(number, 50 if number == 8 else 100 * off) for number, off in enumerate(OFF * 2)])
    assert odd.series[0].changes == ()
    assert "12 campaigns: no change of level detected" in shown(quiet)


def test_few_campaigns_say_that_they_are_few() -> None:
    found = told([night(number, value) for number, value in enumerate(LEVELS[4:8])])
    assert found.series[0].changes == ()
    assert "from 10 campaigns on" in " ".join(shown(found).split())
    assert "4 campaigns: too few to detect a change of level" in shown(found)
    medians = [format_value(value, found.series[0].unit) for value in LEVELS[4:8]]
    assert f"first {medians[0]}, last {medians[-1]}" in shown(found)
    alone = shown(told([night(0, 100)]))
    assert "1 campaign," in alone
    assert "no change" not in alone


def test_other_machines_and_other_contents_are_left_out() -> None:
    former = CELL.model_copy(
        update={"workload": WorkloadSpec(name="commit", tool="fio", parameters={"bs": "8k"})}
    )
    past = [night(0, 1, cells=[former]), night(1, 2, hostname="other"), night(2, 3), night(3, 4)]
    found = told(past)
    assert [point.median for point in found.series[0].points] == [3, 4]
    assert (found.elsewhere, found.former) == (1, 1)
    legend = " ".join(shown(found).split())
    assert "left out: 1 campaign of other machines" in legend
    assert "left out: 1 cell that the last campaign does not have" in legend
    # A cell with another time limit is the same measurement.
    patient = CELL.model_copy(update={"time_limit_s": 1200.0})
    found = told([night(0, 1, cells=[patient]), night(1, 2)])
    assert [point.median for point in found.series[0].points] == [1, 2]


def on_kernel(*files: str | None) -> list[Cell]:
    """Return the cell in guests with these kernels."""
    machines = [MachineSpec(type="uml", kernel=file) for file in files]
    return [
        CELL.model_copy(
            update={
                "stack": CELL.stack.model_copy(update={"machine": machine, "name": machine.kernel or "s"})
            }
        )
        for machine in machines
    ]


def test_a_series_goes_on_with_another_file_of_a_guest_s_kernel() -> None:
    past = [
        night(0, 1, cells=on_kernel(None)),
        night(1, 2, cells=on_kernel("/b/1")),
        night(2, 3, cells=on_kernel("/b/2")),
    ]
    found = told(past)
    assert [point.median for point in found.series[0].points] == [1, 2, 3]
    assert found.former == 0
    # Kernels that one campaign compares are different stacks.
    found = told([*past, night(3, 4, cells=on_kernel("/b/2", "/b/3"))])
    assert [[point.median for point in each.points] for each in found.series] == [[3, 4]]
    assert found.former == 2


def test_campaigns_without_trials_are_no_points() -> None:
    empty, _ = night(1, 1)
    found = told([night(0, 1), (empty, []), night(2, 3)])
    assert found.campaigns == ("20261101-a", "20261103-a")


def test_an_interval_is_only_announced_where_one_is_shown() -> None:
    few = [(campaign, own[:3]) for campaign, own in NIGHTS]
    assert "trials with 90 % CI" in shown(told(NIGHTS))
    assert "CI" not in shown(told(few))


def test_curve() -> None:
    assert history_terminal.curve([1, 8, 4.5]) == "▁█▅"
    assert history_terminal.curve([2, 2]) == "▅▅"


@pytest.mark.parametrize(
    ("ratio", "low", "high", "better", "words"),
    [
        (0.88, 0.84, 0.92, Direction.HIGHER, "12 % slower (8.0 % to 16 %)"),
        (1.2, 0.9, 1.3, Direction.LOWER, "20 % slower (−10 % to 30 %)"),
        (3.0, 2.5, 3.5, Direction.LOWER, "3.00 × as long (2.50–3.50)"),
        (1.1, 1.05, 1.2, Direction.NEITHER, "10 % higher (5.0 % to 20 %)"),
    ],
)
def test_changes_in_words(ratio: float, low: float, high: float, better: Direction, words: str) -> None:
    span = Interval(low=low, high=high, coverage=0.95)
    assert change_words(ratio, span, Unit.NANOSECONDS, better) == words
    assert change_words(None, None, Unit.IOPS, better) == "changed"


class TestCommand:
    @pytest.fixture
    def store(self, tmp_path: Path) -> str:
        return made.stored(tmp_path / "store.sqlite", NIGHTS)

    def test_json_has_points_and_changes(self, store: str, capsys: pytest.CaptureFixture[str]) -> None:
        verb(metric=["write_iops"], store=store, as_json=True)
        document = json.loads(capsys.readouterr().out)
        assert len(document["series"][0]["points"]) == 12
        assert [change["since"] for change in document["series"][0]["changes"]] == ["20261107-a"]

    def test_campaigns_that_were_copied_in_another_order(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = made.stored(tmp_path / "copy.sqlite", reversed(NIGHTS))
        verb(metric=["write_iops"], store=path, as_json=True)
        document = json.loads(capsys.readouterr().out)
        assert [point["campaign"] for point in document["series"][0]["points"]] == document["campaigns"]
        assert document["campaigns"] == sorted(document["campaigns"])
        assert [change["since"] for change in document["series"][0]["changes"]] == ["20261107-a"]

    def test_mistaken_names(self, store: str) -> None:
        with pytest.raises(StoreError, match="did you mean 'nightly'"):
            verb("nigthly.yaml", store=store)
        with pytest.raises(UsageError, match="--workload"):
            verb(workload=["comit"], store=store)
        with pytest.raises(UsageError, match="--stack"):
            verb(stack=["zfs"], store=store)

    def test_the_id_of_a_study_may_contain_dots(self, store: str) -> None:
        campaign, _ = night(20, 100.0)
        with Store.open(store) as opened:
            opened.create_campaign(campaign.model_copy(update={"study_id": "sweep-1.5"}))
            for written in ("sweep-1.5", "studies/sweep-1.5.yaml", "sweep-1.5.yml"):
                assert comparisons.history_of(opened, written).study == "sweep-1.5"
                with pytest.raises(StoreError, match=r"no trial of study 'sweep-1\.5'"):
                    comparisons.fleet_of(opened, written)

    def test_a_machine_without_a_name_cannot_be_chosen(self, store: str) -> None:
        with Store.open(store) as opened:
            opened.create_campaign(night(20, 100.0, hostname=None)[0])
        with pytest.raises(UsageError, match="--machine"):
            verb(machine="None", store=store)


class TestMachines:
    """One study on two machines: the level changes on one of them."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> str:
        measured = [
            night(number, level, kernel=kernel_of(number), hostname=host, name=f"-{host.strip('<>')}")
            for number, value in enumerate(LEVELS)
            for host, level in (("lab1", value), ("<lab2>", 100.0 * OFF[number % 6]))
        ]
        return made.stored(tmp_path / "store.sqlite", measured)

    def test_each_machine_by_itself(self, store: str, capsys: pytest.CaptureFixture[str]) -> None:
        verb(metric=["write_iops"], machine="lab1", store=store, as_json=True)
        document = json.loads(capsys.readouterr().out)
        assert (document["machine"], len(document["series"][0]["points"])) == ("lab1", 12)
        with pytest.raises(UsageError, match="--machine"):
            verb(machine="lab3", store=store)

    def test_changes_of_all(self, store: str) -> None:
        """The changes of all machines are listed together, with their facts. The page escapes the names of machines."""
        with Store.open(store) as opened:
            found = [
                comparisons.history_of(opened, "nightly", metrics=["write_iops"], machine=name)
                for name in ("<lab2>", "lab1")
            ]
            every = comparisons.histories_of_machines(opened, "nightly")
        assert [each.machine for each in every] == ["<lab2>", "lab1"]
        (change,) = fleet_terminal.fleet_changes(found)
        assert (change.machine, change.since) == ("lab1", "20261107-a-lab1")
        assert "kernel: 6.1.0-25 → 6.1.0-26" in change.facts
        said = fleet_terminal.changes_summary(found)
        assert said == "1 change of level on 1 of 2 machines"
        few = [each.model_copy(update={"enough": 1000}) for each in found]
        assert (
            "; on 2 machines, a change cannot be detected yet: fewer than"
            in fleet_terminal.changes_summary(few)
        )
        page = render.changes("nightly", said, [replace(change, machine="<lab2>")])
        assert "&lt;lab2&gt;" in page
        assert "/compare?campaign=20261106-a-lab1&amp;campaign=20261107-a-lab1" in page

    def test_the_campaigns_are_read_once_for_all_machines(
        self, store: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read, times = Store.campaigns, list[str | None]()

        def counted(self: Store, study: str | None = None) -> list[Campaign]:
            times.append(study)
            return read(self, study)

        monkeypatch.setattr(Store, "campaigns", counted)
        with Store.open(store) as opened:
            assert len(comparisons.histories_of_machines(opened, "nightly")) == 2
        assert len(times) == 1

    def test_the_command(self, store: str) -> None:
        done = CliRunner().invoke(app, ["fleet", "changes", "nightly", "--store", store])
        assert done.exit_code == 0, done.output
        assert "1 change of level on 1 of 2 machines" in done.stdout
        assert "kernel: 6.1.0-25 → 6.1.0-26" in " ".join(done.stdout.split())
