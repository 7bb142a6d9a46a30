"""Sentences and labels of a report, and which comparison earns which mark."""

from __future__ import annotations

from typing import Any

import pytest

from fslab.analysis.labels import stack_lines, workload_labels
from fslab.cell import Cache, Cell, Fresh, MediumSpec, StackSpec, WorkloadSpec
from fslab.report.compare import Outcome, Sample, compare_row
from fslab.report.model import Mark, Verdict
from fslab.report.words import listed, ratio_text, row_words
from fslab.units import Direction

HIGHER, LOWER, NEITHER = Direction.HIGHER, Direction.LOWER, Direction.NEITHER
BEST, MAYBE, NONE = Mark.BEST, Mark.MAYBE_BEST, Mark.NONE
FIVE = (98.0, 99.0, 100.0, 101.0, 102.0)


def times(factor: float, values: tuple[float, ...] = FIVE) -> tuple[float, ...]:
    return tuple(factor * value for value in values)


def outcome(better: Direction, **values: tuple[float, ...]) -> Outcome:
    return compare_row([Sample(label=name, values=found) for name, found in values.items()], better, 0.95)


def words(found: Outcome, better: Direction, *missing: str) -> str:
    needed = found.needed_together
    return row_words(found.leader, better, found.comparisons, missing=missing, needed_together=needed)


def test_clear_winner_is_best_and_told_as_multiples_of_the_others() -> None:
    found = outcome(HIGHER, ext4=FIVE, xfs=times(2), btrfs=times(0.5))
    assert (found.leader, found.marks) == ("xfs", (NONE, BEST, NONE))
    # quotients of FIVE by itself: the third smallest is 99/102 (after 98/102, 98/101), so 2 × 0.9706
    assert words(found, HIGHER) == "xfs 2.00 × ext4 (1.94–2.06), 4.00 × btrfs (3.88–4.12)"


def test_where_lower_is_better_the_others_are_multiples_of_the_winner() -> None:
    found = outcome(LOWER, ext4=FIVE, xfs=times(2))
    assert (found.leader, found.marks) == ("ext4", (BEST, NONE))
    assert words(found, LOWER) == "xfs 2.00 × ext4 (1.94–2.06)"


def test_tie_shares_the_mark_and_tells_what_could_have_been_seen() -> None:
    found = outcome(HIGHER, ext4=FIVE, xfs=times(1.001), btrfs=times(0.5))
    assert found.marks == (MAYBE, MAYBE, NONE)
    # 99/102 and 102/99 times 1.001
    tied = "no difference seen between xfs and ext4: within 0.97–1.03 ×"
    assert words(found, HIGHER) == f"xfs 2.00 × btrfs (1.94–2.06); {tied}"


def test_several_ties_each_tell_their_interval() -> None:
    found = outcome(HIGHER, ext4=FIVE, xfs=FIVE, btrfs=FIVE)
    assert found.marks == (MAYBE, MAYBE, MAYBE)
    ties = "xfs (within 0.97–1.03 ×), btrfs (within 0.97–1.03 ×)"
    assert words(found, HIGHER) == f"no difference seen between ext4 and {ties}"


def test_too_few_trials_mark_nothing_and_say_how_many_are_enough() -> None:
    found = outcome(HIGHER, ext4=(1.0, 1.1, 1.2), xfs=(9.0, 9.1, 9.2))
    assert found.marks == (NONE, NONE)
    assert [item.verdict for item in found.comparisons] == [Verdict.TOO_FEW]
    assert words(found, HIGHER) == "too few trials to compare xfs with ext4 (3; 4 each are enough)"


def test_stack_with_too_few_trials_keeps_the_leader_from_being_best() -> None:
    found = outcome(HIGHER, ext4=FIVE, xfs=times(2), btrfs=(1.0,))
    assert found.marks == (NONE, MAYBE, MAYBE)


def test_zero_has_no_ratio_and_no_crash() -> None:
    found = outcome(HIGHER, ext4=(0.0, *FIVE[1:]), xfs=times(2))
    assert found.marks == (NONE, NONE)
    assert words(found, HIGHER) == "xfs and ext4 have no ratio: not all their values are positive"


def test_stack_without_values_is_named_and_not_compared() -> None:
    found = outcome(HIGHER, ext4=FIVE, xfs=times(2), btrfs=())
    assert found.marks == (NONE, BEST, NONE)
    assert words(found, HIGHER, "btrfs") == "xfs 2.00 × ext4 (1.94–2.06); btrfs: no sound trial"


def test_alone_is_not_best() -> None:
    found = outcome(HIGHER, ext4=FIVE)
    assert (found.marks, found.comparisons) == ((NONE,), ())
    assert words(found, HIGHER) == "only ext4 was measured"
    assert words(outcome(HIGHER, ext4=()), HIGHER) == "no sound trial"


def test_without_a_better_direction_nothing_is_marked() -> None:
    found = outcome(NEITHER, ext4=FIVE, xfs=times(2))
    assert (found.leader, found.marks) == ("ext4", (NONE, NONE))
    assert words(found, NEITHER) == "ext4 0.50 × xfs (0.49–0.52)"


def test_holm_is_told_where_it_changes_something() -> None:
    # 5 against 5 gives p = 2/252 at best: enough for 6 comparisons at 5 %, not for 7; 2/924 with 6 each is
    six = outcome(HIGHER, best=times(3), **{f"fs{index}": FIVE for index in range(6)})
    assert all(item.holds_together for item in six.comparisons)
    assert "Holm" not in words(six, HIGHER)
    seven = outcome(HIGHER, best=times(3), **{f"fs{index}": FIVE for index in range(7)})
    assert not any(item.holds_together for item in seven.comparisons)
    assert seven.needed_together == 6
    assert words(seven, HIGHER) == (
        "best 3.00 × fs0 (2.91–3.09), 3.00 × fs6 (2.91–3.09), 5 others in between; "
        "taken together (7 comparisons, Holm) none of these holds, 6 trials each can show it"
    )


@pytest.mark.parametrize(
    ("ratios", "texts"),
    [
        ((1.9, 1.7, 2.1), ("1.90", "1.70", "2.10")),
        ((12.34, 10.0), ("12.3", "10.0")),
        ((1.002, 1.0004), ("1.0020", "1.0004")),
        ((0.998, 1.01), ("0.998", "1.010")),
        ((1.0, 1.0), ("1.00", "1.00")),
    ],
)
def test_ratio_never_looks_like_one_when_it_is_not(ratios: tuple[float, ...], texts: tuple[str, ...]) -> None:
    assert ratio_text(*ratios) == texts


def test_lists_read_as_people_say_them() -> None:
    assert [listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip


RAM = MediumSpec(name="memory", type="ram")


def stack(filesystem: str | None, mount: str = "defaults", **more: Any) -> StackSpec:
    fields = {"name": f"{filesystem}-{mount}", "medium": RAM, "filesystem": filesystem, **more}
    return StackSpec(mount_options=mount, **fields)


def test_stack_is_called_by_its_file_system_where_that_suffices() -> None:
    assert stack_lines([stack("ext4", "noatime"), stack("xfs")]) == [("ext4",), ("xfs",)]
    assert stack_lines([stack(None, name="here")]) == [("here",)]


def test_options_are_named_only_among_stacks_of_one_file_system() -> None:
    stacks = [
        stack("ext4"),
        stack("ext4", "noatime"),
        stack("xfs", "noatime"),
        stack("ext4", mkfs_options="-m 0"),
    ]
    assert stack_lines(stacks) == [
        ("ext4", "defaults", "mkfs defaults"),
        ("ext4", "noatime", "mkfs defaults"),
        ("xfs",),
        ("ext4", "defaults", "mkfs -m 0"),
    ]


def test_medium_and_layout_are_named_where_any_differ() -> None:
    disk = MediumSpec(name="disk", type="loop")
    striped = stack("xfs", layout="lvm-stripe", layout_options={"disks": 2, "chunk": "64k"})
    assert stack_lines([stack("ext4", medium=disk), stack("xfs"), striped]) == [
        ("ext4", "single", "on disk"),
        ("xfs", "single", "on memory"),
        ("xfs", "lvm-stripe disks=2 chunk=64k", "on memory"),
    ]


def test_stacks_that_look_alike_get_their_names() -> None:
    one, other = stack("ext4", name="a"), stack("ext4", name="b")
    assert stack_lines([one, other, stack("xfs")]) == [("ext4", "a"), ("ext4", "b"), ("xfs",)]


def cell(name: str, more: dict[str, Any] | None = None, **parameters: Any) -> Cell:
    workload = WorkloadSpec(name=name, tool="fio", parameters=parameters)
    return Cell(stack=stack("xfs"), workload=workload, **(more or {}))


def test_workloads_of_one_name_are_told_apart() -> None:
    assert workload_labels([cell("a", bs="4k"), cell("b", bs="4k")]) == ["a", "b"]
    assert workload_labels([cell("a", bs="4k"), cell("a", bs="4k", rw="read")]) == ["a", "a (rw=read)"]
    warm = {"cache": Cache.WARM, "fresh": Fresh.CELL, "tuning": {"governor": "powersave"}}
    assert workload_labels([cell("a"), cell("a", warm)]) == [
        "a (cold, fresh per trial)",
        "a (governor=powersave, warm, fresh per cell)",
    ]
