"""Tests of ablations: their cells, switches together, and what their trials show."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made import known
from tests.unit.explained import DIRECT, MIB, cell, seen, written

from fslab.explain import ablation
from fslab.explain.ablation import Attribution, attribute
from fslab.explain.mechanisms import REGISTRY, Switch, all_off
from fslab.store.campaign import Ablation


def test_switches_together() -> None:
    of = cell("btrfs", "noatime,compress=zstd")
    off = all_off(of, [Switch(mount=("nodatasum",), instead=("datasum",)), Switch(mount=("nodatacow",))])
    assert off.stack.mount_options == "noatime,compress=zstd,nodatacow", "which is without checksums as well"
    assert Switch(mkfs="-m single").off(off).stack.mkfs_options == "-m single"  # type: ignore[union-attr]


def test_what_one_switch_rules_out_no_other_one_adds() -> None:
    of = cell("ext4", "data=ordered,commit=5")
    found = seen(of, {})
    switches = [REGISTRY.get(name).switch(found) for name in ("journal", "ordered-mode", "commit-interval")]
    several = [switch for switch in switches if switch is not None]
    assert len(several) == 3
    for order in permutations(several):
        off = all_off(of, order)
        # ext4 without a journal is not mounted with data= or commit=.
        assert (off.stack.mount_options, off.stack.mkfs_options) == ("defaults", "-O ^has_journal")


def test_an_ablation_has_every_combination_of_up_to_three() -> None:
    slow, fast = seen(cell(parameters=DIRECT), {}), seen(cell("xfs", parameters=DIRECT), {})
    switches = ablation.candidates(slow, fast, ["copy-on-write", "data-checksums"])
    found, complete = ablation.cells(slow, fast, switches)
    assert complete
    assert set(found) == {"copy-on-write", "data-checksums", "copy-on-write+data-checksums"}
    assert found["copy-on-write"] == found["copy-on-write+data-checksums"], "one cell, measured once"


def test_what_only_the_slower_stack_has_is_switched_off_first_and_what_nothing_switches_off_never() -> None:
    figures = written(8, 2.0, device_flushes=4096.0, journal_bytes=40.0 * MIB, journal_commits=1024.0)
    slow, fast = seen(cell("ext4"), figures), seen(cell("xfs"), {})
    found = ablation.candidates(slow, fast)
    assert [*found] == ["fast-commit", "commit-interval", "journal", "barriers", "delayed-allocation"]
    assert ablation.common(found, fast) == ("journal", "barriers", "delayed-allocation")
    assert REGISTRY.get("commit-stalls").applies(slow), "but has no switch"
    assert REGISTRY.get("page-cache").alters, "which would be another workload"
    off = seen(cell("xfs", "logbsize=256k,noatime"), {})
    assert "xfs-log" in ablation.candidates(fast, slow)
    assert "xfs-log" not in ablation.candidates(off, slow), "it is off"


def test_direct_io_is_not_honoured_only_where_that_was_found() -> None:
    """btrfs with checksums beside ext4, both written directly: ext4 honours that, and does not pay for it."""
    found = [
        seen(cell(filesystem, parameters=DIRECT), {**written(64), "volume_dirtied_bytes": dirtied * MIB})
        for filesystem, dirtied in (("btrfs", 64.0), ("ext4", 0.5))
    ]
    switches = ablation.candidates(found[0], found[1], ["direct-not-honoured"])
    assert [*switches] == ["direct-not-honoured"]
    assert ablation.common(switches, found[1]) == ()
    assert ablation.common(switches, found[0]) == ("direct-not-honoured",)


def test_more_than_three_are_measured_alone() -> None:
    slow, fast = seen(cell("ext4"), written(8)), seen(cell("vfat"), {})
    four = ["commit-interval", "delayed-allocation", "fast-commit", "journal"]
    found, complete = ablation.cells(slow, fast, ablation.candidates(slow, fast, four))
    assert (sorted(found), complete) == (four, False)
    three, complete = ablation.cells(slow, fast, ablation.candidates(slow, fast, four[1:]))
    assert (len(three), complete) == (7, True)


def test_a_counterfactual_that_is_the_faster_stack_is_measured_once() -> None:
    slow, fast = seen(cell("ext4", "data=journal"), {}), seen(cell("ext4", "data=ordered"), {})
    found, _ = ablation.cells(slow, fast, ablation.candidates(slow, fast, ["data-journalling"]))
    assert found == {"data-journalling": fast.cell}


LEVEL = dict.fromkeys(range(4), 1.0)


def a_plan(*names: str, **more: Any) -> Ablation:
    """Return an ablation of these mechanisms, in cells of the same names."""
    told: dict[str, Any] = {
        "of": "c", "workload": "w", "slow": "a", "fast": "b", "slow_cell": "s", "fast_cell": "f", "metric": "m",
        "higher_is_better": True, "off": {name: name for name in names},
        "switches": {name: f"no {name}" for name in names}, **more,
    }  # fmt: skip
    return Ablation(**told)


def told(plan: Ablation, values: Mapping[str, Mapping[int, float]]) -> tuple[Attribution, list[str]]:
    """Return the attribution by the values of cells, and its words."""
    found = known(ablation.attributed(plan, values, 0.95))
    return found, ablation.in_words(plan, found)


def test_words_name_what_is_not_the_cause_and_always_the_rest() -> None:
    switches = {"copy-on-write": "mount -o nodatacow", "data-checksums": "mount -o nodatasum"}
    plan = a_plan(*switches, slow="btrfs", fast="xfs", metric="write_iops", switches=switches)
    noise = {0: 1.0, 1: 1.02, 2: 0.99, 3: 1.01, 4: 0.98}
    values = {
        "s": noise,
        "f": {block: 8 * value for block, value in noise.items()},
        "copy-on-write": {block: 4 * value for block, value in noise.items()},
        "data-checksums": {4 - block: value for block, value in noise.items()},
    }
    _, words = told(plan, values)
    assert words[0].startswith("w: xfs is better than btrfs by a factor of 8 (8–8)")
    assert words[1] == "btrfs is slower because of copy-on-write."
    narrows = "Switching copy-on-write off (mount -o nodatacow) narrows the gap by a factor of 4"
    assert any(narrows in line for line in words)
    assert any(line.startswith("  data checksums: not the cause") for line in words)
    assert "remains unexplained" in words[-1]
    _, (first, *_) = told(plan, {name: {0: 1 / each[0]} for name, each in values.items()})
    assert (
        first == "w: xfs is not better than btrfs in these trials: a factor of 0.125 (write_iops, 1 block)."
    )


def test_what_both_stacks_have_is_not_why_one_is_slower() -> None:
    factors = {"s": 1.0, "f": 1.7, "barriers": 5.0, "data-journalling": 1.6}
    values = {name: dict.fromkeys(range(4), factor) for name, factor in factors.items()}
    _, words = told(a_plan("barriers", "data-journalling", common=("barriers",)), values)
    assert words[1] == "a is slower because of journalling of data."
    assert words[2].startswith("  Switching cache flushes off (no barriers) makes a faster by a factor of 5")
    assert words[2].endswith(". b has it, too")
    assert words[-1] == "  A factor of 1.06 (1.06–1.06) remains unexplained.", "1.7 = 1.6 × 1.0625"
    both = ablation.common(("barriers", "copy-on-write"), seen(cell("xfs"), {}))
    assert both == ("barriers",), "XFS flushes, too, although nothing switches that off"


def test_a_share_is_measured_with_what_both_stacks_have_switched_on() -> None:
    """Measured with ext4 and XFS on a hard disk: the journal's data matters only where nothing is flushed."""
    both = "barriers+data-journalling"
    factors = {"s": 1.0, "f": 1.1, "barriers": 23.0, "data-journalling": 1.0, both: 52.0}
    values = {name: dict.fromkeys(range(4), factor) for name, factor in factors.items()}
    plan = a_plan("barriers", "data-journalling", common=("barriers",))
    plan = plan.model_copy(update={"off": {**plan.off, both: both}})
    found, words = told(plan, values)
    assert found.complete
    assert (found.shares["data-journalling"].factor, found.rest.factor) == pytest.approx((1, 1.1))
    assert not any("because of" in line for line in words)
    assert any("by a factor of 23 (23–23), alone" in line for line in words)
    slow, fast = (seen(cell(name, parameters=DIRECT), {}) for name in ("ext4", "xfs"))
    switches = ablation.candidates(slow, fast, ["barriers", "journal", "commit-interval"])
    cells, complete = ablation.cells(slow, fast, switches)
    assert complete
    alone = ablation.common(switches, fast)
    assert "barriers" in alone
    assert not [names for names in cells if "+" in names and set(names.split("+")) & set(alone)]
    assert ablation.matter(plan, found) == []


def test_the_strongest_are_measured_together_also_those_that_make_a_stack_faster() -> None:
    """To switch off what makes a stack 4 times as fast changes more than to switch off what takes half of its time."""
    factors = {"journal": 2.0, "delayed-allocation": 0.25, "barriers": 1.9, "ordered-mode": 1.8}
    values = {"s": LEVEL, "f": dict.fromkeys(range(4), 3.0)}
    values |= {name: dict.fromkeys(range(4), factor) for name, factor in factors.items()}
    plan = a_plan(*factors)
    found, _ = told(plan, values)
    assert ablation.matter(plan, found) == ["delayed-allocation", "journal", "barriers"], "the first three"


def test_another_question_is_not_a_share_of_the_difference() -> None:
    values = {"s": LEVEL, "f": dict.fromkeys(range(4), 3.0), "page-cache": dict.fromkeys(range(4), 0.5)}
    found, words = told(a_plan("page-cache"), values)
    assert found.shares == {}
    assert found.rest.factor == pytest.approx(3)
    assert words[1] == (
        "  Switching the page cache off (no page-cache) makes a slower by a factor of 2 (2–2); that is another "
        "question, and no share of the difference"
    )
    found, _ = told(a_plan("page-cache"), {**values, "page-cache": {9: 0.5}})
    assert found.costs == {}, "no block in common"
    assert found.ratio.factor == pytest.approx(3)
    slow, fast = (seen(cell(name, parameters={"rw": "write", "size": "64m"}), {}) for name in ("ext4", "xfs"))
    switches = ablation.candidates(slow, fast, ["page-cache", "journal", "ordered-mode"])
    cells, _ = ablation.cells(slow, fast, switches)
    assert set(cells) - {"journal", "ordered-mode", "journal+ordered-mode"} == {"page-cache"}, "alone only"


def test_few_blocks_show_no_difference_and_small_shares_no_cause() -> None:
    few = {"s": {0: 1.0, 1: 1.0}, "f": {0: 1.01, 1: 1.01}, "journal": {0: 1.0, 1: 1.0}}
    _, (first, *_) = told(a_plan("journal"), few)
    said = "b measured better than a by a factor of 1.01; too few blocks for an interval (m, 2 blocks)"
    assert first == f"w: {said}."
    many = {"s": LEVEL, "f": dict.fromkeys(range(4), 8.0), "journal": dict.fromkeys(range(4), 1.01)}
    _, words = told(a_plan("journal"), many)
    assert not any("because of" in line for line in words)


@pytest.mark.parametrize(
    ("ratio", "first"),
    [
        ((0.5, 0.51, 0.49, 0.5), "w: b is not better than a in these trials: a factor of 0.5"),
        (
            (0.9, 1.1, 1.05, 0.96),
            "w: b and a do not differ clearly in these trials: a factor of 0.999 (0.866–1.15)",
        ),
    ],
)
def test_without_a_gap_nothing_is_its_cause_and_nothing_narrows_it(
    ratio: tuple[float, ...], first: str
) -> None:
    switches = {"copy-on-write": "nodatacow", "data-checksums": "nodatasum"}
    off = (2.0, 2.02, 1.98, 2.0), (0.5, 0.51, 0.49, 0.5)
    values = {"s": LEVEL, "f": dict(enumerate(ratio))}
    values |= {name: dict(enumerate(each)) for name, each in zip(switches, off, strict=True)}
    _, words = told(a_plan(*switches, switches=switches), values)
    assert words[0].startswith(first)
    assert words[1].startswith("  Switching copy-on-write off (nodatacow) makes a faster by a factor of 2 (")
    assert words[2].startswith("  Switching data checksums off (nodatasum) makes a slower by a factor of 2 (")


def test_a_wide_interval_around_nothing_shows_nothing() -> None:
    wide = {0: 0.5, 1: 2.0, 2: 1.0, 3: 1.1}
    _, words = told(a_plan("journal"), {"s": LEVEL, "f": dict.fromkeys(range(4), 2.0), "journal": wide})
    assert "more trials are needed" in words[1]


def test_what_could_not_be_measured_does_not_change_what_is_said_of_the_others() -> None:
    """The share of each of two mechanisms is a mean over both orders, also without the third one, of both stacks."""
    both = "journal+delayed-allocation"
    factors = {"s": 1.0, "f": 6.0, "journal": 2.0, "delayed-allocation": 2.0, both: 6.0}
    values = {name: dict.fromkeys(range(4), factor) for name, factor in factors.items()}
    plan = a_plan("journal", "delayed-allocation", "barriers", common=("barriers",))
    _, words = told(plan.model_copy(update={"off": {**plan.off, both: both}}), values)
    shares = [line for line in words if "narrows the gap" in line]
    assert len(shares) == 2
    assert all("on average over all orders of switching off; alone by 2 (2–2)" in line for line in shares)


def test_without_a_cell_of_two_mechanisms_each_is_known_alone() -> None:
    both = "journal+delayed-allocation"
    factors = {"s": 1.0, "f": 4.0, "journal": 2.0, "delayed-allocation": 1.5}
    values = {name: dict.fromkeys(range(4), factor) for name, factor in factors.items()}
    plan = a_plan("journal", "delayed-allocation")
    found, _ = told(plan.model_copy(update={"off": {**plan.off, both: both}}), values)
    assert not found.complete
    assert {name: share.factor for name, share in found.shares.items()} == {
        "journal": pytest.approx(2), "delayed-allocation": pytest.approx(1.5),
    }  # fmt: skip


def test_a_mechanism_that_could_not_be_measured_is_left_out() -> None:
    plan = a_plan("journal", "barriers", higher_is_better=False)
    # lower is better: 8 s, 2 s for the faster stack, 4 s without the journal
    found, _ = told(plan, {"s": {0: 8.0}, "f": {0: 2.0}, "journal": {0: 4.0}})
    assert found.ratio.factor == pytest.approx(4)
    assert found.shares["journal"].factor == pytest.approx(2)
    assert set(found.shares) == {"journal"}
    for missing in ("s", "f"):
        values = {name: {0: 1.0} for name in ("s", "f", "journal") if name != missing}
        assert ablation.attributed(plan, values, 0.95) is None
    assert attribute({frozenset(): {}}, {0: 1.0}) is None


NONE, A, B, AB = frozenset[str](), frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})


def blocks(value: float, n: int = 5) -> dict[int, float]:
    return dict.fromkeys(range(n), value)


def test_independent_mechanisms_multiply() -> None:
    # without a 2 times as fast, without b 4 times, without both 8 times; the other stack is 16 times as fast
    found = known(attribute({NONE: blocks(1), A: blocks(2), B: blocks(4), AB: blocks(8)}, blocks(16)))
    assert found.complete
    factors = (found.ratio.factor, found.shares["a"].factor, found.shares["b"].factor, found.rest.factor)
    assert factors == pytest.approx((16, 2, 4, 2))


def test_mechanisms_that_do_the_same_share_it() -> None:
    # switching off either one gives the whole factor of 16: each has half of the logarithm, a factor of 4
    found = known(attribute({NONE: blocks(1), A: blocks(16), B: blocks(16), AB: blocks(16)}, blocks(16)))
    assert found.shares["a"].factor == pytest.approx(4)
    assert found.alone["a"].factor == pytest.approx(16)
    assert found.rest.factor == pytest.approx(1)


def test_without_all_combinations_interactions_are_in_the_rest() -> None:
    found = known(attribute({NONE: blocks(1), A: blocks(2), B: blocks(4)}, blocks(4)))
    assert not found.complete
    assert found.rest.factor == pytest.approx(0.5), "2 × 4 × 0.5 = 4"


def test_a_switch_that_changes_nothing_is_told_apart_from_one_that_does() -> None:
    noise = (0.99, 1.01, 1.02, 0.98, 1.0)
    values = {
        NONE: dict(enumerate(noise)),
        A: dict(enumerate(reversed(noise))),
        B: {block: 3 * value for block, value in enumerate(noise)},
    }
    found = known(attribute(values, {block: 3 * value for block, value in enumerate(noise)}))
    assert found.alone["a"].nothing
    assert found.alone["b"].nothing is False


def test_the_intervals_of_several_mechanisms_hold_together() -> None:
    noisy = dict(enumerate((1.0, 1.1, 0.95, 1.05, 0.9)))
    alone = attribute({NONE: blocks(1), A: noisy}, blocks(2))
    beside = known(attribute({NONE: blocks(1), A: noisy, B: blocks(1), AB: noisy}, blocks(2)))
    assert alone is not None
    one, both = alone.alone["a"], beside.alone["a"]
    assert one.factor == both.factor
    assert known(both.low) < known(one.low)
    assert alone.ratio == beside.ratio


def test_few_or_no_blocks() -> None:
    few = known(attribute({NONE: blocks(1, 3), A: blocks(2, 3)}, blocks(2, 3)))
    assert few.shares["a"].low is None
    assert few.shares["a"].nothing is None
    assert attribute({NONE: {0: 1.0}, A: {1: 1.0}}, {0: 1.0}) is None
    assert attribute({NONE: {0: 0.0}}, {0: 1.0}) is None


@given(st.lists(st.lists(st.floats(0.1, 1e6), min_size=9, max_size=9), min_size=1, max_size=6))
def test_shares_and_rest_always_multiply_to_the_ratio(rows: list[list[float]]) -> None:
    sets = [frozenset(name for bit, name in enumerate("abc") if number >> bit & 1) for number in range(8)]
    slow = {off: {block: row[index] for block, row in enumerate(rows)} for index, off in enumerate(sets)}
    found = known(attribute(slow, {block: row[8] for block, row in enumerate(rows)}))
    product = found.rest.factor
    for share in found.shares.values():
        product *= share.factor
    assert product == pytest.approx(found.ratio.factor, rel=1e-9)
