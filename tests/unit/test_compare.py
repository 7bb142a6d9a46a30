"""Tests of the comparison of two sets of results: the verdict of each line, and the table."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from math import exp, sqrt

import pytest
from tests.made import known
from tests.unit.compared import CLAT, IOPS, around, cell, compared, metrics_of, trials
from tests.unit.terminal import printed

from fslab.analysis.campaign_comparison import Results, compare_results
from fslab.analysis.campaign_comparison_lines import CampaignComparison
from fslab.analysis.matching_cells import MatchedBy
from fslab.analysis.noise_pools import CampaignNoise
from fslab.analysis.regression_gate import GateAnswer, judge
from fslab.analysis.table_rows import answers_of_row
from fslab.analysis.workload_groups import groups
from fslab.answers.model import Verdict
from fslab.cell import Cell
from fslab.machine.differences import Difference
from fslab.machine.fact import FactGroup
from fslab.report import campaign_comparison_terminal
from fslab.stopping_settings import StoppingRule
from fslab.trial_record import Provenance, Severity, TrialRecord, ValidityWarning


def all_of(cells: Sequence[Cell], values: Sequence[float], side: str = "a") -> list[TrialRecord]:
    """Return trials of each cell with the same values."""
    return [trial for each in cells for trial in trials(each, values, side)]


class TestLines:
    def test_a_tail_has_a_larger_margin_unless_one_is_given(self) -> None:
        tail = CLAT.model_copy(update={"name": "clat_p99"})
        sync = cell(workload="sync")
        sides = [trials(sync, around(100), name, metric=tail) for name in ("a", "b")]
        assert compared(*sides, metrics_of=lambda _: (tail,)).lines[0].answer.margin == 0.25
        assert compared(*sides, metrics_of=lambda _: (tail,), margin=0.05).lines[0].answer.margin == 0.05

    def test_slower_and_faster_follow_the_metric(self) -> None:
        sync = cell(workload="sync")
        a = [*trials(cell(), around(1000)), *trials(sync, around(100), metric=CLAT)]
        b = [*trials(cell(), around(880), "b"), *trials(sync, around(80), "b", metric=CLAT)]
        rate, latency = compared(a, b).lines
        assert (rate.verdict, rate.answer.winner) == ("12 % slower", "A")
        assert (latency.verdict, latency.answer.winner) == ("20 % faster", "B")
        assert rate.answer.ratio == pytest.approx(0.88)
        # For samples of 5 and 5, the interval starts at the third smallest of the 25 quotients: 0.88·0.99/1.02 (after
        # 0.88·0.98/1.02 and 0.88·0.98/1.01).
        assert known(rate.answer.interval).low == pytest.approx(0.88 * 0.99 / 1.02)
        # Disjoint samples of 5: p = 2 / C(10, 5); two lines, so Holm doubles it.
        assert rate.answer.p_value == pytest.approx(2 / 252)
        assert rate.answer.p_family == pytest.approx(4 / 252)

    def test_large_changes_are_factors(self) -> None:
        sync = cell(workload="sync")
        a = [*trials(cell(), around(100)), *trials(sync, around(100), metric=CLAT)]
        b = [*trials(cell(), around(350), "b"), *trials(sync, around(300), "b", metric=CLAT)]
        assert [line.verdict for line in compared(a, b).lines] == ["3.50 × as fast", "3.00 × as long"]

    def test_no_difference_is_a_tie_within_the_margin_or_open(self) -> None:
        one = cell()
        (line,) = compared(trials(one, around(100)), trials(one, around(100.5), "b")).lines
        assert (line.answer.verdict, line.verdict) == (Verdict.ALIKE, "alike (± 10 %)")
        (line,) = compared(trials(one, around(100)), trials(one, around(100.5), "b"), margin=0.01).lines
        assert line.answer.verdict is Verdict.OPEN
        assert re.fullmatch(r"needs about \d+ more trials", line.verdict)

    def test_many_comparisons_make_a_difference_a_maybe(self) -> None:
        """Of 25 pairs of trials, two contradict: p = 2 · (1 + 1 + 2) / C(10, 5) = 0.032, too large for one of three."""
        cells = [cell(workload=name) for name in ("x", "y", "z")]
        a, b = all_of(cells, around(100)), all_of(cells, around(103.05), "b")
        (told,) = {line.verdict for line in compared(a, b).lines}
        assert told.startswith("maybe 3")
        assert [f"maybe {line.verdict}" for line in compared(a[:5], b[:5]).lines] == [told]

    def test_ranks_of_few_trials_do_not_hide_a_difference_in_many_lines(self) -> None:
        """4 trials on each side give p = 2 / C(8, 4) = 0.029 at least, too large for one of three; means are compared.

        Values of a figure too coarse for its noise have no noise to compare them with.
        """
        cells = [cell(workload=name) for name in ("x", "y", "z")]
        for steps, verdict, method in (
            (around(1)[:4], "20 % faster", "welch_t"),
            ([1.0] * 4, "maybe 20 % faster", "rank_sum"),
        ):
            a, b = (
                all_of(cells, [by * step for step in steps], side) for by, side in ((100, "a"), (120, "b"))
            )
            lines = compared(a, b).lines
            assert [(line.verdict, line.answer.method) for line in lines] == [(verdict, method)] * 3

    def test_too_few_none_and_unsound(self) -> None:
        one, two, three = cell(workload="x"), cell(workload="y"), cell(workload="z")
        a = [*trials(one, [1, 2]), *trials(two, [1.0] * 5), *trials(three, [0.0] * 5)]
        b = [*trials(one, [1, 2], "b"), *trials(two, [1.0] * 5, "b"), *trials(three, [1.0] * 5, "b")]
        bad = ValidityWarning(kind="kernel_error", severity=Severity.INVALID, message="I/O error")
        b = [trial.model_copy(update={"validity": (bad,)}) if trial.cell == two else trial for trial in b]
        assert [line.verdict for line in compared(a, b).lines] == [
            "too few trials (each side needs 3)",
            "no usable value in B",
            "no ratio: not all values are positive",
        ]

    def test_side_by_side_blocks_cancel_drift(self) -> None:
        """Each block is slower than the one before, and in each block B is 10 % slower than A.

        Only a paired comparison detects the difference.
        """
        ext4, xfs = cell("ext4"), cell("xfs")
        drift = [100 * 0.7**block for block in range(6)]
        steps = zip(drift, (1.0, 1.01, 0.99, 1.0, 1.01, 0.99), strict=True)
        a = trials(ext4, [value * step for value, step in steps])
        b = trials(xfs, [value * 0.9 for value in drift])
        assert compared(a, b, paired=True).lines[0].answer.verdict is Verdict.SMALLER
        assert compared(a, b, by=MatchedBy.WORKLOAD).lines[0].answer.verdict is Verdict.OPEN

    def test_two_stacks_of_a_campaign_have_the_interval_of_the_row(self) -> None:
        """Three blocks of 24 cells: the noise of the other cells narrows the interval of each comparison."""
        rng, names = random.Random(4), ("ext4", "xfs", "btrfs")
        records = [
            trial
            for number in range(8)
            for name in names
            for trial in trials(cell(name, f"w{number}"), [100 * exp(rng.gauss(0, 0.02)) for _ in range(3)])
        ]
        whole = Results.of_trials("", records)
        ext4, xfs = (
            whole.only([each for each in whole.cells if each.stack.name == name], name) for name in names[:2]
        )
        found = compare_results(ext4, xfs, by=MatchedBy.WORKLOAD, metrics_of=metrics_of)
        noise = CampaignNoise(trials=records)
        of_rows = []
        for group in groups(whole.cells, records):
            row = answers_of_row(group, IOPS, StoppingRule(trials=3), noise=noise, same={})
            of_rows += [
                each.inverted()
                for each in row.answers
                if {each.over, each.under} == {ext4.cells[0].stack_id, xfs.cells[0].stack_id}
            ]
        for line, answer in zip(found.lines, of_rows, strict=True):
            assert (line.answer.method, answer.method) == ("moderated_t", "moderated_t")
            one, other = known(line.answer.interval), known(answer.interval)
            assert (one.low, one.high) == pytest.approx((other.low, other.high))

    def test_means_keep_directions_and_block_sizes_apart(self) -> None:
        made = [cell(workload=f"w{n}-{bs}", bs=bs) for bs in ("4k", "1m") for n in (1, 2)]
        sides = zip(made, (2.0, 0.5, 3.0, 1.2), strict=True)
        b = [trial for each, by in sides for trial in trials(each, around(100 * by), "b")]
        means = compared(all_of(made, around(100)), b).means
        assert [(mean.block_size, mean.of) for mean in means] == [("4k", 2), ("1m", 2)]
        assert [mean.ratio for mean in means] == [pytest.approx(1.0), pytest.approx(sqrt(3.6))]
        # It combines an interval of each workload, at 97.5 % or more. Each is between the smallest and the largest
        # quotient of two trials; the factors 2.0 and 0.5 cancel.
        interval = known(means[0].interval)
        assert interval.coverage >= 0.95
        assert 0.98 / 1.02 <= interval.low < 1 < interval.high <= 1.02 / 0.98

    def test_a_mean_of_paired_ratios_has_an_interval_of_pairs(self) -> None:
        """The level of each stack drifts by 40 %, but in each block xfs is 5 % ahead, within 0.5 %."""
        drift = (100.0, 120.0, 90.0, 80.0, 110.0)
        noise = (1.0, 1.005, 0.995, 1.003, 0.997)
        a, b = [], []
        for work in ("w1", "w2"):
            a += trials(cell("ext4", work), drift)
            b += trials(
                cell("xfs", work), [level * 1.05 * step for level, step in zip(drift, noise, strict=True)]
            )
        (mean,) = compared(a, b, paired=True).means
        assert mean.interval is not None
        assert 1.03 < mean.interval.low < 1.05 < mean.interval.high < 1.07
        assert mean.interval.coverage >= 0.95
        (unpaired,) = compared(a, b, by=MatchedBy.WORKLOAD).means
        assert unpaired.interval is None or unpaired.interval.low < 1


def shown(found: CampaignComparison, width: int = 80) -> str:
    return printed(campaign_comparison_terminal.show, found, width=width)


def test_on_a_narrow_terminal_no_ratio_and_no_verdict_is_cut() -> None:
    slower = trials(cell(), around(880), "b")
    lines = shown(compared(trials(cell(), around(1000)), slower), 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert "ext4: A 1k IOPS, B 880 IOPS, B ÷ A 0.88 (0.85–0.91): 12 % slower" in " ".join(
        " ".join(lines).split()
    )


def test_the_terminal_at_80_columns() -> None:
    a = [*trials(cell(), around(1000)), *trials(cell("xfs"), around(1000))]
    sides = (cell(), 880), (cell("xfs"), 1200)
    b = [trial for of, at in sides for trial in trials(of, around(at), "b", kernel="6.1.0-26")]
    said = shown(compared(a, b, allowed=["kernel"]))
    assert (
        said
        == """\
A  A · a · 2026-11-20 21:49 UTC · kernel 6.1.0-25 · 10 trials: 10 usable
B  B · b · 2026-11-20 21:49 UTC · kernel 6.1.0-26 · 10 trials: 10 usable
differs: kernel: 6.1.0-25 → 6.1.0-26

                    A                 B   B ÷ A (95 % CI)  B is
rand-4k, write IOPS
  ext4  1k IOPS ± 2 %    880 IOPS ± 2 %  0.88 (0.85–0.91)  12 % slower
  xfs   1k IOPS ± 2 %  1.20k IOPS ± 2 %  1.20 (1.16–1.24)  20 % faster

medians of the usable trials (± half their range, if the terminal is wide
  enough)"""
    )


def test_a_difference_of_several_workloads_is_shown_once() -> None:
    words = "a b c d e f g h"
    alike = [
        Difference(
            fact="parameters.run", group=FactGroup.STUDY, a=(f"{name} {words} x",), b=(f"{name} {words} y",)
        )
        for name in ("one", "two")
    ]
    found = compared(trials(cell(), around(1000)), trials(cell(), around(1000), "b"))
    said = shown(found.model_copy(update={"differences": tuple(alike)}))
    assert said.count("differs, but must be equal: parameters.run: also x → also y (the rest is equal)") == 1


def test_long_names_of_stacks_do_not_hide_what_b_is() -> None:
    name = "ext4 noatime,nodiratime,lazytime,commit=60,data=writeback"
    said = shown(compared(trials(cell(name), around(1000)), trials(cell(name), around(880), "b")))
    assert f"  {name}\n      1k IOPS  880 IOPS  0.88 (0.85–0.91)  12 % slower\n" in said


def test_a_ratio_far_from_the_quotient_of_the_medians_is_explained() -> None:
    """The quotients of the blocks, 1.2, 1.3, 2.19, 2.22 and 2.25, have the geometric mean 1.76, but the median 2.19."""
    one, other = cell(), cell("xfs")
    first, second = trials(one, [100.0] * 5), trials(other, [120.0, 130.0, 219.0, 222.0, 225.0])
    found = compared(first, second, paired=True)
    (line,) = found.lines
    assert line.answer.ratio == pytest.approx(1.76, abs=0.01)
    assert line.answer.of_medians == pytest.approx(2.19)
    told = "ratios are computed block by block: the quotient of the medians is 2.19 (rand-4k on ext4 → xfs"
    assert told in " ".join(shown(found).split())
    near = compared(trials(one, around(100)), trials(one, around(200), "b"))
    assert "quotient of the medians" not in shown(near)


def test_what_holds_only_for_independent_trials_is_reported() -> None:
    one = cell()
    found = compared(trials(one, around(100)), trials(one, around(103.5), "b"))
    (line,) = found.lines
    assert line.answer.fragile
    told = " ".join(shown(found).split())
    only = "the only difference holds only if trials are independent, which needs 20 trials of each to check"
    assert only in told
    assert "rand-4k on ext4, write IOPS" in told
    sure = compared(trials(one, around(100)), trials(one, around(200), "b"))
    assert "independent" not in shown(sure)


def test_several_campaigns_count_once_each_and_carry_what_scatters_between_them() -> None:
    """Values differ by 2 % within a night, but by 20 % between nights.

    Comparing two single nights shows a difference that does not exist. Comparing four with four nights does not.
    """
    nights = {"a": (100.0, 80.0, 95.0, 85.0), "b": (84.0, 99.0, 79.0, 96.0)}
    sides = {
        side: [
            Results.of_trials(f"{side}{number}", trials(cell(), around(middle), f"{side}{number}"))
            for number, middle in enumerate(middles)
        ]
        for side, middles in nights.items()
    }
    single = compare_results(sides["a"][0], sides["b"][0], metrics_of=metrics_of)
    assert single.lines[0].answer.verdict is Verdict.SMALLER
    a, b = (Results.of_several(side, parts) for side, parts in sides.items())
    (line,) = compare_results(a, b, metrics_of=metrics_of).lines
    assert (line.a.values, line.b.values) == (nights["a"], nights["b"])
    assert (line.answer.verdict, line.sampled) == (Verdict.OPEN, "campaigns")
    # With 4 campaigns on each side, the interval from the smallest to the largest quotient covers 97.1 %.
    assert known(line.answer.interval).low == pytest.approx(79 / 100)
    assert known(line.answer.interval).high == pytest.approx(99 / 80)
    (few,) = compare_results(a, sides["b"][0], metrics_of=metrics_of).lines
    assert few.verdict == "too few campaigns (each side needs 3)"


def test_two_stacks_that_are_the_same_need_no_more_trials_and_show_their_warnings() -> None:
    """Equal settings under two names. Their warnings are those of the stack: a reader must see them here, too."""
    spec = cell().stack
    one, other = (cell(spec=spec.model_copy(update={"name": name})) for name in ("one", "two"))
    warning = ValidityWarning(kind="sync_not_flushed", severity=Severity.WARNING, message="m")
    found_by = Provenance(observed={"options_in_effect": ("rw",)})
    noise = [
        [
            each.model_copy(update={"validity": (warning,), "provenance": found_by})
            for each in trials(of, values)
        ]
        for of, values in ((one, (16e3, 18e3, 12e3)), (other, (17e3, 22e3, 21e3)))
    ]
    found = compared(*noise, paired=True)
    assert [line.verdict for line in found.lines] == ["the same stack"]
    assert judge(found, slower=0.05, different=True).answer is GateAnswer.CLEAR
    said = " ".join(shown(found).split())
    assert "A and B are the same stack (their options have the same effect)" in said
    assert said.count("fsync did not flush the disk's cache (3 of 3)") == 2
    assert "more trials" not in said
    tuned = cell(spec=other.stack.model_copy(update={"tuning": {"io_scheduler": "none"}}))
    different = compared(
        noise[0], [each.model_copy(update={"provenance": found_by}) for each in trials(tuned, (17e3, 22e3, 21e3))],
        paired=True,
    )  # fmt: skip
    assert different.same_stack is None
    assert "more trials" in different.lines[0].verdict


def test_warnings_of_a_side_have_one_order() -> None:
    found = [
        ValidityWarning(kind=kind, severity=Severity.WARNING, message="m")
        for kind in ("too_short", "foreign_load", "sync_not_flushed", "volume_small", "loop_buffered")
    ]
    one, other, *rest = trials(cell(), around(1000))
    one, other = (
        each.model_copy(update={"validity": own})
        for each, own in ((one, tuple(found)), (other, (found[2], found[3])))
    )
    note = ValidityWarning(kind="cpu_stolen", severity=Severity.NOTE, message="m")
    noted = rest[0].model_copy(update={"validity": (note,)})
    side = compared([one, other, noted], trials(cell(), around(880), "b")).a
    assert [*side.warnings.items()] == [
        ("sync_not_flushed", 2), ("volume_small", 2), ("foreign_load", 1), ("loop_buffered", 1), ("too_short", 1),
    ]  # fmt: skip
    assert side.with_warnings == 2


def test_campaigns_of_a_side_that_are_not_named_are_counted() -> None:
    found = compared(trials(cell(), around(1000)), trials(cell(), around(880), "b"))
    side = found.a.model_copy(update={"name": "nights", "campaigns": ("c1", "c2", "c3", "c4", "c5")})
    assert "nights · c1, c2, c3 and 2 more · " in shown(found.model_copy(update={"a": side}))
