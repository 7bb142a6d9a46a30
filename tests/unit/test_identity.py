"""Tests of the identity of cells: comparisons and histories match cells by their content, then by their names."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.compared import around, cell, compared, metrics_of, trials
from tests.unit.test_history import LEVELS, night

from fslab.analysis.campaign_comparison import Results, compare_results
from fslab.analysis.history import history
from fslab.analysis.matching_cells import MatchedBy, match
from fslab.cell import Cache, Cell, MediumSpec, by_workload
from fslab.plan.expand import expand
from fslab.study.load import load_text

STUDY = """\
title: t
media: {MEDIUM: {type: ram, size: 1g}}
stacks: {fs: {medium: MEDIUM, filesystem: FILESYSTEMS}}
workloads: {w: {tool: fio, rw: write, bs: 1m, size: 64m, direct: true}}
"""


def cells(filesystems: str, medium: str = "m") -> tuple[Cell, ...]:
    text = STUDY.replace("FILESYSTEMS", filesystems).replace("MEDIUM", medium)
    return expand(load_text(text, "s.yaml"))


def renamed(of: Cell, name: str) -> Cell:
    return of.model_copy(update={"stack": of.stack.model_copy(update={"name": name})})


def only(found: Sequence[Cell], filesystem: str) -> Cell:
    (one,) = [each for each in found if each.stack.filesystem == filesystem]
    return one


def test_a_file_system_more_in_a_study_leaves_the_others_what_they_are() -> None:
    one, two = only(cells("ext4"), "ext4"), only(cells("[ext4, xfs]", "fast"), "ext4")
    assert (one.stack.name, two.stack.name) == ("fs", "ext4")
    assert one.id != two.id
    assert one.content_id == two.content_id
    assert one.content_id != only(cells("[ext4, xfs]"), "xfs").content_id


def test_slices_are_no_part_of_the_identity() -> None:
    """Whether a cell is measured in slices depends on the other stacks, and on the room of the machine."""
    alone, both = load_text(sliced("ext4"), "s.yaml"), load_text(sliced("[ext4, xfs]"), "s.yaml")
    one, two = only(expand(alone), "ext4"), only(expand(both), "ext4")
    assert (one.slice_s is None, two.slice_s is None) == (True, False)
    assert one.content_id == two.content_id
    assert two.id == two.model_copy(update={"slice_s": None}).id
    assert len(by_workload([one, two])) == 1
    assert match([one], [two], MatchedBy.STACK).partners


def sliced(filesystems: str) -> str:
    return STUDY.replace("FILESYSTEMS", filesystems).replace("MEDIUM", "m") + "slices: auto\n"


def test_a_copy_has_an_identity_of_its_own() -> None:
    one = cell()
    assert one.content_id != one.model_copy(update={"cache": Cache.WARM}).content_id
    assert one.content_id == one.model_copy(update={"time_limit_s": 5.0}).content_id


def test_no_options_are_the_defaults() -> None:
    one = cell()
    bare = one.model_copy(update={"stack": one.stack.model_copy(update={"mount_options": ""})})
    assert bare.content_id == one.content_id


def test_a_renamed_stack_is_compared() -> None:
    one = cell("ext4")
    found = compared(trials(renamed(one, "fs"), around(100.0)), trials(one, around(200.0), campaign="b"))
    (line,) = found.lines
    assert line.stack == "fs → ext4"
    assert not found.differences
    assert (found.only_a, found.only_b) == ((), ())


def test_a_cell_that_differs_between_campaigns_of_a_side_says_in_what() -> None:
    one = cell()
    work = one.workload.model_copy(update={"parameters": {**one.workload.parameters, "size": "7m"}})
    other = one.model_copy(update={"workload": work})
    found = compare_results(
        Results.of_several("a,b", [side(one, "a"), side(other, "b")]),
        Results.of_several("c,d", [side(one, "c"), side(other, "d")]).only([], "none"),
    )
    (told,) = found.only_a
    assert told.endswith("(not compared: its campaigns differ in parameters.size)")


def side(of: Cell, campaign: str) -> Results:
    return Results.of_trials(campaign, trials(of, around(100.0), campaign), None)


def test_content_goes_before_names() -> None:
    """Cells are matched by content before names. Campaign B uses the names of A's two stacks the other way round."""
    plain = cell("ext4")
    noatime = plain.model_copy(update={"stack": plain.stack.model_copy(update={"mount_options": "noatime"})})
    a = [*trials(renamed(plain, "x"), around(100.0)), *trials(renamed(noatime, "y"), around(300.0))]
    b = [*trials(renamed(plain, "y"), around(200.0), "b"), *trials(renamed(noatime, "x"), around(300.0), "b")]
    found = compared(a, b)
    assert {line.stack: round(line.answer.ratio or 0, 2) for line in found.lines} == {
        "x → y": 2.0,
        "y → x": 1.0,
    }
    assert not found.differences


def test_a_stack_that_changed_under_its_name_is_reported() -> None:
    one = cell("ext4")
    other = one.model_copy(update={"stack": one.stack.model_copy(update={"mount_options": "noatime"})})
    found = compared(trials(one, around(100.0)), trials(other, around(100.0), campaign="b"))
    assert [each.fact for each in found.differences] == ["mount_options"]


def test_a_renamed_stack_on_a_renamed_medium_is_compared() -> None:
    one = cell("ext4")
    medium = MediumSpec(name="elsewhere", type=one.stack.medium.type, options=one.stack.medium.options)
    other = one.model_copy(update={"stack": one.stack.model_copy(update={"name": "fs", "medium": medium})})
    assert len(compared(trials(one, around(1.0)), trials(other, around(1.0), campaign="b")).lines) == 1


def test_several_campaigns_are_one_side_whatever_each_calls_it() -> None:
    one = cell("ext4")
    parts = [
        Results.of_trials("a1", trials(renamed(one, "fs"), around(100.0), "a1")),
        Results.of_trials("a2", trials(one, around(101.0), "a2")),
    ]
    right = Results.of_trials("b", trials(one, around(200.0), "b"))
    (line,) = compare_results(Results.of_several("a", parts), right, metrics_of=metrics_of).lines
    assert len(line.a.values) == 2


def test_a_history_goes_on_under_another_name() -> None:
    one = cell("ext4")
    nights = [
        night(number, middle, cells=[renamed(one, "fs") if number < 6 else one])
        for number, middle in enumerate(LEVELS)
    ]
    found = history(nights, metrics_of=metrics_of)
    (series,) = found.series
    assert (series.stack, len(series.points), found.former) == ("ext4", 12, 0)
    (by_name,) = history(nights, metrics=["write_iops"], metrics_of=metrics_of).series
    assert len(by_name.points) == 12
