"""Tests of what a page shows per campaign and per row: unique figures, ratios, absences, versions,
devices, order of words, points of a large campaign."""

from __future__ import annotations

import re
from typing import Any

import vl_convert
from tests.browser import campaigns
from tests.browser.campaigns import BTRFS, EXT4, XFS
from tests.unit import compared

from fslab.cell import Cell, MachineSpec, StackSpec
from fslab.report import paper_table
from fslab.report.build import build
from fslab.report.figures import paper, points
from fslab.report.figures.over_time import OrderPoint
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Report
from fslab.report.page import assemble, heat, method, render
from fslab.report.terminal import one_line
from fslab.trial_record import Metric, Provenance, Status, TrialRecord, Value
from fslab.units import Direction, Unit

WORK = campaigns.workload("w")
IOPS = Metric(name="write_iops", unit=Unit.IOPS)


def built(found: list[TrialRecord], metric: Metric = IOPS) -> Report:
    cells = tuple({trial.cell.id: trial.cell for trial in found}.values())
    return build(campaigns.campaign(cells), found, known=lambda _: (metric,))


def trials(stack: StackSpec, middle: float, **more: Any) -> list[TrialRecord]:
    cell = Cell(stack=stack, workload=WORK)
    return [campaigns.trial(cell, block, middle * step, **more) for block, step in enumerate(campaigns.STEPS)]


def test_figures_of_two_campaigns_have_different_ids() -> None:
    """An id is also the name of a file: without a prefix, the second campaign's figures replace those of the first."""
    campaign, found = campaigns.small()
    second = campaign.model_copy(update={"id": "second"})
    sources = [assemble.CampaignSource(campaign=each, trials=found) for each in (campaign, second)]
    page = assemble.page(sources)
    assert all(part.sweeps for part in page.parts)
    ids = [figure.id for figure in assemble.figures(page)]
    assert sorted(ids) == sorted(set(ids))


def test_a_figure_with_intervals_says_their_level() -> None:
    campaign, found = campaigns.small()
    page = assemble.page([assemble.CampaignSource(campaign=campaign, trials=found)])
    drawn = [figure for figure in assemble.figures(page) if figure.marks.get("interval")]
    assert {"90 % CI" in figure.caption for figure in drawn} == {True}, [each.caption for each in drawn]


def test_a_name_of_a_figure_is_no_expression_of_vega() -> None:
    evil = 'x\\" + upper("evil") + "\n'
    metric = Metric(name=evil, unit=Unit.IOPS)
    values = {evil: Value(value=1.0, unit=Unit.IOPS)}
    found = [each for stack in (EXT4, XFS) for each in trials(stack, 1.0, metrics=values)]
    report = built(found, metric)
    (row,), looks = report.rows, StackStyles.of(report.stacks)
    point = points.PlotPoint(stack="xfs", block=0, value=1.0, kind="usable")
    figure = points.points_figure("w", row, [point], looks, heat.best_of(row))
    svg = vl_convert.vegalite_to_svg(paper.on_paper(figure.spec), vl_version=paper.VEGA_LITE)
    assert "evil" in svg
    assert "EVIL" not in svg


def test_names_that_make_the_same_text_have_different_ids() -> None:
    """Workload ``a`` with metric ``b_rate`` and workload ``a-b`` with metric ``rate``; a metric and a figure ``cpu``;
    the heading of workload ``a`` and workload ``a-h``."""
    of = {"a": ("b_rate", "cpu"), "a-b": ("rate",), "a.b": ("rate",), "a-h": ("rate",)}
    cells = tuple(
        Cell(stack=stack, workload=campaigns.workload(name)) for name in of for stack in (EXT4, XFS)
    )
    found = []
    for cell in cells:
        metrics = {name: Value(value=1.0, unit=Unit.IOPS) for name in of[cell.workload.name]}
        found += [campaigns.trial(cell, block, 1.0, metrics=metrics) for block in range(5)]
    page = assemble.page(
        [assemble.CampaignSource(campaign=campaigns.campaign(cells), trials=found)],
        known=lambda work: tuple(Metric(name=name, unit=Unit.IOPS) for name in of[work.name]),
    )
    ids = [figure.id for figure in assemble.figures(page)]
    assert sorted(ids) == sorted(set(ids))
    assert {"w-a-b-rate", "w-a-b-rate--2"} < set(ids)
    anchors = re.findall(r' id="([^"]+)"', render.html(page))
    assert {"fig-w-a-b-rate", "w-a-h"} < set(anchors)
    assert sorted(anchors) == sorted(set(anchors))


def test_ratios_of_every_trial_are_to_the_best_median() -> None:
    """The leader can be another stack: it follows corrected levels and, without a preferred direction, is the first."""
    for better, best, word in ((Direction.HIGHER, 300.0, "best"), (Direction.NEITHER, 300.0, "largest")):
        metric = IOPS.model_copy(update={"better": better})
        report = built([*trials(EXT4, 100.0), *trials(XFS, 300.0), *trials(BTRFS, 200.0)], metric)
        row = report.rows[0].model_copy(update={"leader": "ext4"})
        looks = StackStyles.of(report.stacks)
        point = points.PlotPoint(stack="xfs", block=0, value=150.0, kind="usable")
        figure = points.points_figure("w", row, [point], looks, heat.best_of(row))
        layers = {layer["name"]: layer for layer in figure.spec["layer"]}
        assert layers["trial"]["data"]["values"][0]["value_ratio"] == 150.0 / best
        medians = {each["stack"]: each["median_ratio"] for each in layers["median"]["data"]["values"]}
        assert medians == {"ext4": 0.33333, "xfs": 1.0, "btrfs": 0.66667}
        assert figure.spec["usermeta"]["fslab"]["ratio"]["title"].endswith(f"÷ the {word} median")


def test_a_cell_that_failed_and_is_not_possible_says_the_same_everywhere() -> None:
    """ "Not possible here" only if no trial failed for another reason."""
    cell = Cell(stack=XFS, workload=WORK)
    none: dict[str, Any] = {"metrics": {}, "raw": {}}
    failed = campaigns.trial(cell, 0, 1.0, status=Status.FAILED, failure="f", error="e", **none)
    absent = campaigns.trial(cell, 1, 1.0, status=Status.UNSUPPORTED, error="no such module", **none)
    for found, word in (([failed, absent], "failed"), ([absent], "not possible here")):
        report = built([*trials(EXT4, 100.0), *found])
        row = report.rows[0]
        (tiles,) = [each.tiles for each in heat.rows(report, (), {"w": "w"})]
        assert tiles[1].words == word
        assert word in one_line(row, row.summaries[1]).plain
        assert f"| {word} |" in paper_table.markdown(report)
        assert ("not possible here" in row.words) is (word == "not possible here")
        assert ("no usable value" in row.words) is (word == "failed")


def test_a_tool_with_several_versions_is_shown_with_all_of_them() -> None:
    found = [
        *trials(EXT4, 100.0, provenance=Provenance(tools={"fio": "3.39", "mkfs": None})),
        *trials(XFS, 100.0, provenance=Provenance(tools={"fio": "3.33"})),
    ]
    report = built(found)
    tables = {each.caption: each for each in method.tables(campaigns.campaign(()), found, report)}
    told = {name: fields[0].text for name, fields in tables["Versions of the tools"].rows}
    assert told == {"fio": "3.33, 3.39", "mkfs": "unknown"}


def test_a_page_has_the_host_as_a_trial_on_it_has_found_it() -> None:
    """When the campaign began, a trial of another campaign may have set the governor. A guest has facts of its own."""
    begun = campaigns.campaign(()).model_copy(update={"machine": {"governor": "performance"}})
    in_guest = EXT4.model_copy(update={"machine": MachineSpec(type="uml")})
    guest = trials(in_guest, 1.0, provenance=Provenance(machine={"governor": None}))
    host = trials(XFS, 1.0, provenance=Provenance(machine={"governor": "powersave"}))
    for found, governor in (([*guest, *host], "powersave"), (guest, "performance")):
        tables = {each.caption: each for each in method.tables(begun, found, built(found))}
        assert [fields[0].text for _, fields in tables["Machine"].rows] == [governor]


def test_a_guest_whose_memory_varies_from_boot_to_boot_is_one() -> None:
    stack = EXT4.model_copy(update={"machine": MachineSpec(type="uml")})
    facts = [{"kernel": "6.1", "cpus": 1, "memory_bytes": size} for size in (1034731520, 1028308992, 2 << 30)]
    found = [each for own in facts for each in trials(stack, 1.0, provenance=Provenance(machine=own))]
    assert [guest.memory_bytes for guest in built(found).guests] == [1034731520, 2 << 30]


def test_stacks_on_another_machine_are_listed_in_the_order_of_the_plan() -> None:
    guests = [
        StackSpec(name=f"g{number}", medium=campaigns.MEDIUM, filesystem="ext4", mount_options=f"commit={number}",
                  machine=MachineSpec(type="uml"))
        for number in range(5, 11)
    ]  # fmt: skip
    report = built([*trials(EXT4, 1000.0), *(each for guest in guests for each in trials(guest, 100.0))])
    labels = [stack.label for stack in report.stacks]
    places = [report.rows[0].words.index(label) for label in labels[1:]]
    assert "on another kind of machine" in report.rows[0].words
    assert places == sorted(places)


def test_an_invalid_trial_is_never_part_of_a_usable_point() -> None:
    count = 2 * assemble.MOMENTS
    points = [
        OrderPoint(
            stack="xfs", workload="w", usable=number % 5 != 0, minutes=float(number),
            ratio=1.0 if number % 5 else 0.1,
        )
        for number in range(count)
    ]  # fmt: skip
    found = assemble._thinned(points)
    assert len(found) <= assemble.MOMENTS + 2
    assert sum(each.trials for each in found) == count
    assert {each.ratio for each in found if each.usable} == {1.0}
    assert {each.ratio for each in found if not each.usable} == {0.1}
    assert sum(each.trials for each in found if not each.usable) == count // 5


def test_facts_of_disks_share_a_row_and_counters_have_none() -> None:
    disks: list[dict[str, object]] = [
        {"profile": "hdd-7200", "seed": seed, "faults": [], "statistics": {"reads": seed}} for seed in (1, 2)
    ]
    device = {"size_bytes": 1 << 30, "virtual_disks": disks}
    records = [
        trial.model_copy(update={"provenance": Provenance(device=device)})
        for trial in compared.trials(compared.cell(), compared.around(1))
    ]
    ((title, facts),) = method._devices(records)
    assert title == "Device under ram (size=1g)"
    assert dict(method._described(facts)) == {
        "size": "1 GiB",
        "virtual disks: profile": "hdd-7200",
        "virtual disks: seed": "1 / 2",
    }
