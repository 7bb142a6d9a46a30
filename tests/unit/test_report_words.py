"""Tests of the sentences, labels and marks of a report."""

from __future__ import annotations

import random
from math import exp
from typing import Any

import pytest

from fslab.analysis.labels import stack_lines, workload_labels
from fslab.analysis.table_rows import Mark, RowAnswers, row_answers
from fslab.analysis.workload_groups import Sample
from fslab.answers.model import Verdict
from fslab.cell import Cache, Cell, Fresh, MachineSpec, MediumSpec, StackSpec, WorkloadSpec
from fslab.report.row_words import ranking_words, row_words
from fslab.stats.distributions import two_sided_quantile
from fslab.stats.interim_looks import Looks
from fslab.units import Direction, Unit, listed, ratio_text

HIGHER, LOWER, NEITHER = Direction.HIGHER, Direction.LOWER, Direction.NEITHER
BEST, MAYBE, NONE = Mark.BEST, Mark.MAYBE_BEST, Mark.NONE
# The logarithms of the five quotients of NOISY and FLAT are −0.02 … 0.02: mean 0, standard error √(0.001/4/5) =
# 0.00707. The interval is t(0.975; 4) = 2.776 standard errors, ± 0.01963: the ratio times 0.9806 and 1.0198.
NOISY = tuple(100 * exp(x / 100) for x in (-2, -1, 0, 1, 2))
FLAT = (100.0,) * 5


def times(factor: float, values: tuple[float, ...] = FLAT) -> tuple[float, ...]:
    return tuple(factor * value for value in values)


def pairs(
    better: Direction,
    machines: dict[str, str] | None = None,
    looks: Looks | None = None,
    *,
    unit: Unit = Unit.OPERATIONS_PER_SECOND,
    **values: tuple[float, ...],
) -> RowAnswers:
    samples = [
        Sample(
            stack=name,
            spec=stack(name, machine=MachineSpec(type=(machines or {}).get(name, "host"))),
            values=dict(enumerate(found)),
        )
        for name, found in values.items()
    ]
    return row_answers(samples, better, looks=looks, unit=unit)


def outcome(
    better: Direction, *, unit: Unit = Unit.OPERATIONS_PER_SECOND, **values: tuple[float, ...]
) -> RowAnswers:
    return pairs(better, None, None, unit=unit, **values)


def leader(row: RowAnswers) -> str | None:
    return row.leader.stack if row.leader else None


def words(found: RowAnswers, better: Direction, *missing: str, of: str | None = None) -> str:
    chosen = of or leader(found)
    answers, not_compared = (found.oriented(chosen), found.not_compared(chosen)) if chosen else ([], [])
    return row_words(chosen, better, answers, missing=missing, not_compared=not_compared)


def test_clear_winner_is_best_and_told_as_multiples_of_the_others() -> None:
    found = outcome(HIGHER, ext4=FLAT, xfs=times(2, NOISY), btrfs=times(0.5))
    assert (leader(found), found.marks()) == ("xfs", {"ext4": NONE, "xfs": BEST, "btrfs": NONE})
    assert words(found, HIGHER) == "xfs 2.00 × ext4 (1.96–2.04), 4.00 × btrfs (3.92–4.08)"


def test_a_ratio_that_is_far_from_that_of_the_medians_is_explained() -> None:
    # ln of 1.2, 1.3, 2.19, 2.22, 2.25: mean 0.5674, standard deviation 0.3167, × 2.776/√5 = 1.2415 is ± 0.3932
    found = outcome(HIGHER, xfs=(120.0, 130.0, 219.0, 222.0, 225.0), ext4=FLAT)
    said = words(found, HIGHER)
    assert said.startswith("xfs 1.76 × ext4 (1.19–2.61); ")
    assert said.endswith("; ratios are computed block by block: the quotient of the medians is 2.19 (ext4)")
    near = outcome(HIGHER, xfs=(205.0, 208.0, 219.0, 222.0, 225.0), ext4=FLAT)
    assert "medians" not in words(near, HIGHER)


def test_where_lower_is_better_the_others_are_multiples_of_the_winner() -> None:
    found = outcome(LOWER, ext4=NOISY, xfs=times(2))
    assert (leader(found), found.marks()) == ("ext4", {"ext4": BEST, "xfs": NONE})
    assert words(found, LOWER) == "xfs 2.00 × ext4 (1.96–2.04)"


def test_against_a_baseline_each_is_told_as_a_part_of_it() -> None:
    found = pairs(HIGHER, None, ext4=NOISY, xfs=times(2), btrfs=times(0.5))
    assert words(found, HIGHER, of="ext4") == "ext4 0.50 × xfs (0.49–0.51), 2.00 × btrfs (1.96–2.04)"
    assert found.marks()["xfs"] is BEST


def test_tie_shares_the_mark_and_tells_within_what() -> None:
    found = outcome(HIGHER, ext4=FLAT, xfs=times(1.001, NOISY), btrfs=times(0.5))
    assert found.marks() == {"ext4": MAYBE, "xfs": MAYBE, "btrfs": NONE}
    tied = "xfs and ext4 alike (± 10 %): 0.98–1.02 ×"
    assert words(found, HIGHER) == f"xfs 2.00 × btrfs (1.96–2.04); {tied}"


def test_stacks_that_cannot_be_told_apart_share_a_place() -> None:
    found = outcome(HIGHER, ext4=FLAT, xfs=times(1.001, NOISY), btrfs=times(0.5))
    assert ranking_words(found.ranking()) == "1.= xfs, ext4 · 3. btrfs"


def test_several_ties_each_tell_their_interval() -> None:
    found = outcome(HIGHER, ext4=NOISY, xfs=FLAT, btrfs=FLAT)
    assert found.marks() == {"ext4": MAYBE, "xfs": MAYBE, "btrfs": MAYBE}
    alike = "0.98–1.02 ×"
    ties = f"xfs ({alike}), btrfs ({alike})"
    assert words(found, HIGHER) == f"alike (± 10 %): ext4 and {ties}"


def test_many_ties_are_told_as_one() -> None:
    found = outcome(HIGHER, a=NOISY, b=FLAT, c=FLAT, d=FLAT, e=FLAT, f=FLAT)
    told = words(found, HIGHER)
    assert told.startswith("alike (± 10 %): a and 5 others (within 0.98–1.02 ×)")
    assert "b (" not in told


def test_a_difference_of_few_trials_that_autocorrelation_could_make_is_reported() -> None:
    # The interval is 1.03 × 1.0198⁻¹ … 1.0198. One that is 1.85 times as wide contains 1.
    found = outcome(HIGHER, xfs=times(1.03, NOISY), ext4=FLAT)
    assert words(found, HIGHER) == (
        "xfs 1.03 × ext4 (1.01–1.05); this difference holds only if trials are independent, which needs 20 "
        "blocks to check"
    )
    found = outcome(HIGHER, xfs=times(1.03, NOISY), ext4=FLAT, btrfs=times(0.5))
    assert "the difference from ext4 holds only if trials are independent" in words(found, HIGHER)
    assert "independent" not in words(outcome(HIGHER, xfs=times(1.1, NOISY), ext4=FLAT), HIGHER)


def test_too_few_trials_mark_nothing_and_say_how_many_are_enough() -> None:
    found = outcome(HIGHER, ext4=(1.0, 1.1), xfs=(9.0, 9.1))
    assert set(found.marks().values()) == {NONE}
    assert [item.verdict for item in found.answers] == [Verdict.TOO_FEW]
    assert words(found, HIGHER) == "too few trials to compare xfs with ext4 (2 complete blocks; 3 needed)"


def test_stack_with_too_few_trials_keeps_the_leader_from_being_best() -> None:
    found = outcome(HIGHER, ext4=FLAT, xfs=times(2, NOISY), btrfs=(1.0,))
    assert found.marks() == {"ext4": NONE, "xfs": MAYBE, "btrfs": MAYBE}


def test_zero_has_no_ratio_and_no_crash() -> None:
    found = outcome(HIGHER, ext4=(0.0, *FLAT[1:]), xfs=times(2))
    assert set(found.marks().values()) == {NONE}
    assert words(found, HIGHER) == "xfs and ext4 have no ratio: not all their values are positive"


def test_counts_of_which_some_are_none_are_told_by_how_many_more() -> None:
    """If some counts are 0, the difference is reported, because there is no ratio.

    The differences 8, 9, 10, 9 have mean 9 and Poisson standard error √(9/4) = 1.5; × t(0.975; 3) = 3.182 is 4.77.
    """
    many = {"ext4": (8.0, 9.0, 10.0, 9.0), "xfs": (0.0,) * 4, "btrfs": (0.0, 1.0, 0.0, 0.0)}
    found = outcome(LOWER, unit=Unit.COUNT, **many)
    assert (leader(found), found.marks()) == ("xfs", {"ext4": NONE, "xfs": MAYBE, "btrfs": MAYBE})
    assert words(found, LOWER).startswith(
        "ext4 9 more (4.23–13.8) than xfs; "
        "no difference shown: xfs none in 4 trials, btrfs up to 1 in 1 of 4 trials"
    )
    assert [place.stacks for place in found.ranking()] == [("xfs", "btrfs"), ("ext4",)]
    better = outcome(HIGHER, unit=Unit.COUNT, **many)
    assert leader(better) == "ext4"
    assert words(better, HIGHER).startswith("ext4 9 more (4.23–13.8) than xfs, 8.75 more (")


def test_counts_of_which_some_are_none_are_compared_at_the_level_of_a_look() -> None:
    looks = Looks(first=4)
    (pair,) = pairs(LOWER, None, looks, unit=Unit.COUNT, ext4=(8.0, 9.0, 10.0, 9.0), xfs=(0.0,) * 4).answers
    assert pair.more == 9.0
    assert pair.more_interval is not None
    assert pair.more_interval.coverage == looks.coverage_at(4)
    half = 1.5 * two_sided_quantile(1 - looks.coverage_at(4), 3)
    assert pair.more_interval.high - 9 == pytest.approx(half)


def test_counts_above_none_keep_their_ratio() -> None:
    found = outcome(LOWER, unit=Unit.COUNT, ext4=times(2), xfs=NOISY)
    assert words(found, LOWER) == words(outcome(LOWER, ext4=times(2), xfs=NOISY), LOWER)


def test_stack_without_values_is_named_and_not_compared() -> None:
    found = outcome(HIGHER, ext4=FLAT, xfs=times(2, NOISY), btrfs=())
    assert found.marks() == {"ext4": NONE, "xfs": BEST}
    assert words(found, HIGHER, "btrfs") == "xfs 2.00 × ext4 (1.96–2.04); btrfs: no usable value"


def test_alone_is_not_best() -> None:
    found = outcome(HIGHER, ext4=FLAT)
    assert (found.marks(), found.answers, found.ranking()) == ({"ext4": NONE}, (), ())
    assert words(found, HIGHER) == "measured on ext4 only"
    assert words(outcome(HIGHER, ext4=()), HIGHER) == "no usable value"


def test_without_a_better_direction_nothing_is_marked() -> None:
    found = outcome(NEITHER, ext4=NOISY, xfs=times(2))
    assert (leader(found), set(found.marks().values()), found.ranking()) == ("ext4", {NONE}, ())
    assert words(found, NEITHER) == "ext4 0.50 × xfs (0.49–0.51)"


def test_stacks_on_unlike_machines_are_never_compared() -> None:
    found = pairs(HIGHER, {"f2fs": "uml"}, ext4=FLAT, xfs=times(2, NOISY), f2fs=times(9))
    assert (leader(found), found.oriented("f2fs")) == ("f2fs", [])
    assert BEST not in found.marks().values()
    assert set(found.not_compared("f2fs")) == {"ext4", "xfs"}


def test_holm_is_told_where_it_changes_something() -> None:
    # xfs and ext4: ln 1.022 = 0.0218, divided by 0.00707, is t = 3.08 with 4 degrees of freedom, p = 0.037. xfs and
    # btrfs: a little less, but far more than ext4 and btrfs. Holm multiplies the smallest by 3.
    btrfs = tuple(100 + each for each in (-0.2, 0.1, -0.1, 0.0, -0.3))
    found = outcome(HIGHER, ext4=FLAT, xfs=times(1.022, NOISY), btrfs=btrfs)
    assert all(item.differs for item in found.oriented("xfs"))
    assert not any(item.holds for item in found.oriented("xfs"))
    assert words(found, HIGHER).endswith("not significant after Holm correction: run more trials")


def test_the_second_difference_of_three_needs_no_correction() -> None:
    """xfs is behind btrfs by 2.2 % (p = 0.037), and ext4 by far: of the three pairs, only one could be equal then."""
    found = outcome(HIGHER, ext4=times(0.5), xfs=FLAT, btrfs=times(1.022, NOISY))
    assert all(each.holds for each in found.answers)


@pytest.mark.parametrize("blocks", [5, 8, 9, 10, 11, 15])
def test_large_differences_hold_in_large_rows_with_any_number_of_blocks(blocks: int) -> None:
    """The smallest p-value of the signed ranks of ten blocks, 1/512, is too large for 28 comparisons."""
    draw = random.Random(1)
    values = {
        f"s{number}": tuple(100 * 1.65**number * exp(draw.gauss(0, 0.02)) for _ in range(blocks))
        for number in range(8)
    }
    found = outcome(HIGHER, unit=Unit.OPERATIONS_PER_SECOND, **values)
    assert all(each.holds for each in found.answers)


def test_a_stack_is_worse_than_one_of_several_best_only_after_holm_s_correction() -> None:
    """ext4 alone is significantly behind xfs (p = 0.037), but not among three. If it were the only rival, or if xfs
    were better than all others, it would be behind."""
    alike = times(1.022, NOISY[::-1])
    both = outcome(HIGHER, ext4=FLAT, xfs=times(1.022, NOISY), btrfs=alike)
    assert both.marks() == {"ext4": MAYBE, "xfs": MAYBE, "btrfs": MAYBE}
    assert outcome(HIGHER, ext4=FLAT, xfs=times(1.022, NOISY)).marks() == {"ext4": NONE, "xfs": BEST}
    alone = outcome(HIGHER, ext4=FLAT, xfs=times(1.022, NOISY), btrfs=times(0.999))
    assert alone.marks() == {"ext4": NONE, "xfs": BEST, "btrfs": NONE}


def test_a_stack_that_another_one_beats_is_not_among_the_best() -> None:
    """ext4, with the best median, varies too much to show anything. btrfs is 10 % behind xfs in each block."""
    noisy = (130.0, 70.0, 120.0, 90.0, 110.0)
    found = outcome(HIGHER, ext4=noisy, xfs=times(0.99), btrfs=times(0.9, NOISY))
    assert found.marks() == {"ext4": MAYBE, "xfs": MAYBE, "btrfs": NONE}
    last = outcome(HIGHER, ext4=times(0.5), xfs=FLAT, btrfs=times(0.9, NOISY)).marks()
    assert last == {"ext4": NONE, "xfs": BEST, "btrfs": NONE}


@pytest.mark.parametrize(
    ("ratios", "texts"),
    [
        ((1.9, 1.7, 2.1), ("1.90", "1.70", "2.10")),
        ((12.34, 10.0), ("12.3", "10.0")),
        ((1.002, 1.0004), ("1.0020", "1.0004")),
        ((0.998, 1.01), ("0.998", "1.010")),
        ((1.0, 1.0), ("1.00", "1.00")),
        ((1.0 + 1e-12, 0.96, 1.04), ("1.00", "0.96", "1.04")),
        ((0.0035,), ("0.0035",)),
        ((0.098, 0.2), ("0.098", "0.200")),
        ((150.4,), ("150",)),
        ((1e-9,), ("0.000000",)),
        ((1.86, 1e-8, 2.7e10), ("1.9", "<0.001", ">1000")),
        ((2400.0, 2300.0, 2500.0), ("2400", "2300", "2500")),
        ((0.0, 1.0), ("0.00", "1.00")),
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


def test_a_stack_has_its_name_in_the_study() -> None:
    """The layout or an option may be the question, and the name says so."""
    assert stack_lines([stack("ext4", name="striped disks=2"), stack("xfs", name="here")]) == [
        ("striped", "disks=2"),
        ("here",),
    ]


def test_stacks_with_one_name_are_told_apart() -> None:
    """Those of several studies."""
    disk = MediumSpec(name="memory", type="loop", options={"size": "1g"})
    striped: dict[str, Any] = {"layout": "lvm-stripe", "layout_options": {"disks": 2}}
    same = [stack("ext4", name="s"), stack("ext4", name="s", medium=disk), stack("ext4", name="s", **striped)]
    assert stack_lines(same) == [
        ("s", "single", "on ram"),
        ("s", "single", "on loop (size=1g)"),
        ("s", "lvm-stripe disks=2", "on ram"),
    ]
    assert stack_lines([stack("ext4", name="s"), stack("xfs", name="s")]) == [("s", "ext4"), ("s", "xfs")]


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
